"""The texts of `--help`: for each command a summary in a line, and its examples and exit statuses."""

from __future__ import annotations

#: Name of a command -> its summary, for the list of commands and the top of its own help.
SUMMARIES = {
    "run": "judge one or more targets",
    "serve": "serve the reference implementation, an executable example of the contract",
    "requirements": "list the catalogue of requirements",
    "explain": "explain one requirement: clause, reasoning, how it is checked, what it needs",
    "doctor": "examine a target before a run: configuration, DNS, TLS, key, state provider",
    "faults": "list the faults of the reference server, each with what it breaks, and its correct variants",
    "selftest": "prove that each check can fail: run the suite against every fault and variant",
    "compare": "compare results: what changed between two, or a matrix of more",
    "audit": "re-derive the verdict of a written run from its evidence, without the service",
    "report": "render the reports of a saved result again",
    "init": "write a commented targets.toml and an example state provider into this folder",
}

#: Name of a command -> the text below its options.
EPILOGS = {
    "run": """\
examples:
  store-orders-conformance run                              the reference server, which the run starts
  store-orders-conformance run staging                      a target of targets.toml in this folder
  store-orders-conformance run staging production -n 4      two targets, four checks at a time
  store-orders-conformance run --base-url http://127.0.0.1:8080/v1 --api-key-env MY_KEY \\
                               --states-url http://127.0.0.1:9000/_states
  store-orders-conformance run staging --only CANCEL,AUTH-3 --seed 7
  store-orders-conformance run production --plan            what would run, and why the rest would not

exit status: 0 conformant · 1 non-conformant · 2 command line, configuration or waivers wrong, nothing was sent ·
3 incomplete: nothing required failed, but something required could not be decided · 130 interrupted
""",
    "serve": """\
examples:
  store-orders-conformance serve                            on a free port; prints which file holds the new key
  store-orders-conformance serve --port 8080 --states-port 9000 --api-key-env MY_KEY
  store-orders-conformance serve --orders 1000              a store of a thousand orders; a JSON file also works
  store-orders-conformance serve --fault NAME NAME --variant NAME     wrong in two ways, and odd in one

exit status: 0 stopped (Ctrl-C, SIGTERM, SIGHUP) · 2 command line wrong, or it could not start
""",
    "requirements": """\
examples:
  store-orders-conformance requirements                     a line for each
  store-orders-conformance requirements --json              with clauses, reasoning and checks

exit status: 0 listed · 2 command line wrong
""",
    "explain": """\
examples:
  store-orders-conformance explain CANCEL-3
  store-orders-conformance explain auth-1

exit status: 0 explained · 2 command line wrong, or there is no such requirement
""",
    "doctor": """\
Sends a few listings, and has the state provider place orders and take them back; it cancels only orders placed for it.
In mode full it also has the store of an unprotected target emptied, as a run does: what was there before is lost.

examples:
  store-orders-conformance doctor staging                   a target of targets.toml in this folder
  store-orders-conformance doctor --base-url http://127.0.0.1:8080/v1 --api-key-env MY_KEY \\
                                  --states-url http://127.0.0.1:9000/_states

exit status: 0 ready for a run · 2 something must be fixed, or command line or configuration wrong · 130 interrupted
""",
    "faults": """\
examples:
  store-orders-conformance faults                           a line for each
  store-orders-conformance faults --json
  store-orders-conformance serve --fault NAME               serves a fault
  store-orders-conformance serve --variant NAME             serves a variant, which the list calls correct

exit status: 0 listed · 2 command line wrong
""",
    "report": """\
Sends nothing. The evidence comes from the evidence.har beside the result, if there is one.

examples:
  store-orders-conformance report reports/staging           in place
  store-orders-conformance report vendor/results.json --report-dir rendered

exit status: 0 rendered · 2 unreadable input, or a folder that cannot be written to
""",
    "init": """\
examples:
  store-orders-conformance init                             writes both files, if neither is there
  store-orders-conformance init --force                     replaces files that are there

exit status: 0 written · 2 a file is there already, or cannot be written
""",
    "selftest": """\
A fault is caught only if the requirement that it breaks failed. A variant is left alone only if everything was decided,
and nothing failed but the recommended requirements that it is known not to follow. Exit status 1 means: a fault was
missed, a variant was not left alone, a requirement has fewer than two faults (except BASE-2, which no server can
break), no fault is known to make a check fail, or a check no longer fails on a recorded fault, or sends less than
recorded.

examples:
  store-orders-conformance selftest                         the whole matrix
  store-orders-conformance selftest CANCEL AUTH-3           the faults of a family and of a requirement

exit status: 0 each fault caught, each variant left alone · 1 otherwise · 2 command line wrong · 130 interrupted
""",
    "compare": """\
examples:
  store-orders-conformance compare reports/staging reports/production
  store-orders-conformance compare vendor-a/results.json vendor-b/results.json vendor-c/results.json

exit status: 0 no regression · 1 a regression · 2 unreadable input
""",
    "audit": """\
Runs the checks again, with the same random choices, on the recorded answers; sends nothing.

examples:
  store-orders-conformance audit reports/staging

exit status: 0 every status and figure follows from the evidence · 1 something stated does not ·
2 unreadable, or made by another version of the suite
""",
}
