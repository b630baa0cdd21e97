"""The command line of `store-orders-conformance`: its commands, their options, and the function that runs each."""

from __future__ import annotations

import argparse
import atexit
import difflib
import gc
import os
import re
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from conformance import __version__
from conformance.budgets import BUDGETS
from conformance.commands.help import EPILOGS, SUMMARIES
from conformance.configuration.settings import OPTIONS, name_of
from conformance.console.streams import complain, escape_unencodable, give_up_unwritable, open_closed
from conformance.signals import ENDING, ignore_ending_signals
from conformance.target import ConfigError
from conformance.text import visible
from conformance.verdict import Exit

PROGRAM = "store-orders-conformance"
#: The options of `run` that `doctor` takes, too.
OPTIONS_OF_DOCTOR = (
    "--config", "--base-url", "--api-key-env", "--states-url", "--mode", "--confirm-cancel", "--timeout", "--max-body",
    "--ca-bundle", "--client-cert", "--proxy",
)  # fmt: skip


class Parser(argparse.ArgumentParser):
    """Reports a mistake in two lines: what is wrong, and how to get help."""

    def error(self, message: str) -> NoReturn:
        """Exit with status 2."""
        sys.stderr.write(f"{self.prog}: {message}\nSee `{self.prog} --help`.\n")
        raise SystemExit(Exit.USAGE)


def parser() -> Parser:
    """The whole command line."""
    top = Parser(
        PROGRAM,
        description="Tells, with evidence, whether a deployment of the Store Orders Service keeps its contract.",
        epilog=f"`{PROGRAM} COMMAND --help` has the options and examples of a command. Start with `{PROGRAM} run`.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    top.add_argument("--version", action="version", version=f"{PROGRAM} {__version__}")
    commands = top.add_subparsers(title="commands", metavar="COMMAND", required=True)

    command = partial(_add_command, commands)

    _add_options_of_run(command("run", _run))

    from reference_server.running import add_options

    add_options(command("serve", _serve))

    requirements = command("requirements", _requirements)
    form = requirements.add_mutually_exclusive_group()
    form.add_argument("--json", dest="form", action="store_const", const="json", help="as JSON")
    form.add_argument("--markdown", dest="form", action="store_const", const="markdown", help="as a Markdown table")

    explain = command("explain", _explain)
    explain.add_argument("id", metavar="ID", help="a requirement, such as CANCEL-3, in upper or lower case")

    doctor = command("doctor", _doctor)
    doctor.add_argument("target", nargs="?", metavar="TARGET", help="a configured target, or reference (the default)")
    for flag in OPTIONS_OF_DOCTOR:
        doctor.add_argument(flag, **OPTIONS[flag])

    faults = command("faults", _faults)
    faults.add_argument("--json", dest="form", action="store_const", const="json", help="as JSON")

    _add_options_of_selftest(command("selftest", _selftest))

    compare = command("compare", _compare)
    result: dict[str, Any] = {"metavar": "RESULTS", "type": Path, "help": "a results.json, or the folder that holds it"}
    compare.add_argument("results", nargs="+", **result)
    compare.add_argument("--report-dir", metavar="DIR", type=Path, help="write comparison.html and comparison.md there")

    audit = command("audit", _audit)
    audit.add_argument("folder", metavar="DIR", type=Path, help="the folder of one target: reports/staging")

    report = command("report", _report)
    report.add_argument("results", **result)
    report.add_argument("--report-dir", metavar="DIR", type=Path, help="where to (default: the folder of the result)")

    init = command("init", _init)
    init.add_argument("--force", action="store_true", help="replace files that are there already")
    return top


def _add_command(
    commands: argparse._SubParsersAction[Parser], name: str, work: Callable[[argparse.Namespace], int]
) -> Parser:
    """Add a command that does `work`; returns its parser, which has no options yet."""
    summary = SUMMARIES[name]
    added = commands.add_parser(
        name,
        help=summary,
        description=summary[0].upper() + summary[1:] + ".",
        epilog=EPILOGS[name],
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    added.set_defaults(work=work, parser=added)
    return added


def _add_options_of_run(run: Parser) -> None:
    run.add_argument("targets", nargs="*", metavar="TARGET", help="a configured target, or reference (the default)")
    run.add_argument("--plan", action="store_true", help="say what would run and what not, and why; sends nothing")
    workers = "checks at a time; auto: one per processor (default: 1, or more where the service is far away)"
    run.add_argument("-n", dest="workers", metavar="N|auto", help=workers)
    written = {"default": "reports", "help": f"{OPTIONS['--report-dir']['help']} (default: %(default)s/)"}
    for flag, arguments in OPTIONS.items():
        run.add_argument(flag, **{**arguments, **(written if flag == "--report-dir" else {})})


def _add_options_of_selftest(selftest: Parser) -> None:
    judged = "only these faults, variants, requirements or families; variants: all of these"
    selftest.add_argument("names", nargs="*", metavar="NAME", help=judged)
    workers = (os.cpu_count() or 1) + 3  # much of the time goes into waiting
    told = "workers (default: three more than there are processors)"
    selftest.add_argument("-n", dest="workers", type=int, default=workers, metavar="N", help=told)
    searched = {"default": "quick", "help": "how hard the generated checks search (default: %(default)s)"}
    selftest.add_argument("--budget", **{**OPTIONS["--budget"], **searched})
    seeded = {"default": 1, "help": "repeats the random choices of another selftest (default: %(default)s)"}
    selftest.add_argument("--seed", **{**OPTIONS["--seed"], **seeded})
    where = "where the matrix goes (default: %(default)s)"
    selftest.add_argument("--report-dir", metavar="DIR", type=Path, default="reports/selftest", help=where)


class Early(KeyboardInterrupt):
    """A signal that ends a run which has sent nothing so far."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    open_closed()
    escape_unencodable()
    # Python's last garbage collection takes 0.2 s after a run, and would find nothing.
    atexit.register(gc.freeze)
    failed = Exit.USAGE
    early = True
    status = 0
    try:
        options, left = parser().parse_known_args(arguments)
        if options.work is _run and not any(word.startswith("-") for word in left):
            options.targets += left  # argparse takes only those before the first option
        elif left:
            options.parser.error(f"unrecognized arguments: {' '.join(left)}{_meant(left[0], options.parser)}")
        early = False
        failed = Exit.INCOMPLETE if options.work is _run and not options.plan else Exit.USAGE
        status = options.work(options)
        sys.stdout.flush()
    except ConfigError as error:
        complain(f"{PROGRAM}: {visible(_without_key(str(error), options))}")
        return Exit.USAGE
    except BrokenPipeError:  # the reader of the output has gone: `… requirements | head`
        give_up_unwritable()
    except OSError as error:
        complain(f"{PROGRAM}: {visible(str(error))}")
        give_up_unwritable()
        return failed
    except KeyboardInterrupt as interruption:
        if early or options.work is not _run or isinstance(interruption, Early):  # else the run says so itself
            requests = early or options.work is _run
            complain(f"interrupted{' before the first request' if requests else ''}")
        return Exit.INTERRUPTED
    except ModuleNotFoundError as error:
        complain(f"{PROGRAM}: {error.name} is not installed: install the package with its dependencies")
        return Exit.USAGE
    except Exception as error:  # left to Python, the status would be 1, which is a verdict
        if isinstance(error.__cause__, KeyboardInterrupt):  # raised while a class was made, which Python 3.11 wraps
            return Exit.INTERRUPTED
        where = "".join(traceback.format_tb(error.__traceback__))  # without the message, which may hold anything
        complain(f"the suite itself failed; please report this:\n{where}{type(error).__name__}")
        return failed
    return status


def _without_key(text: str, options: argparse.Namespace) -> str:
    """`text` without the key: a pipeline may have put it in the place of a URL, say, which a message then repeats."""
    from conformance.transport.redaction import SECRET_PART, Redactor  # only where something is wrong

    told = getattr(options, "api_key_env", None)
    for name, value in os.environ.items():
        if len(value) >= SECRET_PART and (name == told or re.fullmatch(r"STORE_ORDERS_\w*KEY", name)):
            text = Redactor(value).clean(text)
    return text


def _meant(word: str, parser: Parser) -> str:
    """A question whether an option of `parser` was meant by `word`; empty if none is similar."""
    close = difflib.get_close_matches(word.partition("=")[0], re.findall(r"--[a-z-]+", parser.format_usage()), 1, 0.7)
    return f"; did you mean {close[0]}?" if close else ""


def _heed() -> None:
    """Let the first ending signal end the command with the status for that, and ignore all further ones."""
    for number in ENDING:
        signal.signal(number, _interrupt)
    # On exit, Python restores the default handlers, which would end the process with another status.
    atexit.register(ignore_ending_signals)


def _interrupt(number: int, frame: object) -> NoReturn:
    ignore_ending_signals()  # pipelines send a second signal soon after the first
    raise Early(f"signal {number}")


def _values(options: argparse.Namespace) -> dict[str, Any]:
    names = [name_of(flag) for flag in OPTIONS]
    return {name: getattr(options, name) for name in names if hasattr(options, name)}


# Each command imports what it needs, so that `--help` does not wait for pytest.


def _run(options: argparse.Namespace) -> int:
    _heed()  # before anything is imported, which takes longer than some pipelines wait
    if options.plan:
        from conformance.commands import planning

        return planning.plan(tuple(options.targets), _values(options), options.workers)
    from conformance.runner import ahead

    # Of a part of the requirements, few have checks that are generated.
    with ahead.begun(BUDGETS[options.budget], at_once=not options.only) as generator:
        gc.disable()  # collections while modules are loaded take a fifth of a second, and find nothing
        from conformance.commands import running

        gc.freeze()
        gc.enable()
        return running.run(tuple(options.targets), _values(options), options.workers, generator)


def _serve(options: argparse.Namespace) -> int:
    from reference_server.running import serve

    return serve(options)


def _requirements(options: argparse.Namespace) -> int:
    from conformance.commands import describe

    print(describe.requirements(options.form))
    return 0


def _explain(options: argparse.Namespace) -> int:
    from conformance.commands import describe

    print(describe.explain(options.id))
    return 0


def _doctor(options: argparse.Namespace) -> int:
    from conformance.commands import doctor

    return doctor.examine((options.target,) if options.target else (), _values(options))


def _faults(options: argparse.Namespace) -> int:
    from conformance.commands import describe

    print(describe.faults(options.form))
    return 0


def _selftest(options: argparse.Namespace) -> int:
    _heed()
    from conformance.commands import selftest

    return selftest.run(tuple(options.names), options.seed, options.budget, options.workers, options.report_dir)


def _compare(options: argparse.Namespace) -> int:
    from conformance.commands import saved

    return saved.compare(options.results, options.report_dir)


def _audit(options: argparse.Namespace) -> int:
    from conformance.commands import audit

    return audit.audit(options.folder)


def _report(options: argparse.Namespace) -> int:
    from conformance.commands import saved

    return saved.report(options.results, options.report_dir)


def _init(options: argparse.Namespace) -> int:
    from conformance import templates

    return templates.write(force=options.force)
