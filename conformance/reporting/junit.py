"""`junit.xml`: one test case for each check, in the JUnit XML that Jenkins, GitLab and GitHub actions read.

There is no standard; the elements are those of Jenkins' `junit-10.xsd` (xunit-plugin), and `<properties>`
in a test case as pytest writes them. GitLab shows the failure text only, so all that a reader needs is in
there.

| check of | failed | inconclusive | passed | excluded |
|---|---|---|---|---|
| a requirement that gates | failure | error | passed | skipped |
| one that does not (recommended, without strict) | skipped | skipped | passed | skipped |
| a waived one | skipped | skipped | passed | skipped |

So a reader of this file goes red exactly when the verdict is not `conformant`: what could not be decided is
an error, since readers take skipped for green, and a recommendation turns nobody's pipeline red. A run that
was cut short, lost a process, or had nothing to check, has a test case of its own that says so.
"""

from __future__ import annotations

from xml.etree import ElementTree as Xml

from conformance.reporting import outline
from conformance.reporting.run import Run
from conformance.text import cut, visible
from conformance.verdict import CheckResult, RequirementResult, Status

_MESSAGE = 300


def render(run: Run) -> str:
    """`run` as the text of a JUnit XML file: a suite named after the target, requirements in their order."""
    suite = Xml.Element("testsuite")
    _properties(
        suite,
        {
            "target": run.target,
            "base_url": run.base_url,
            "mode": run.mode,
            "verdict": outline.headline(run),
            "suite": run.suite_version,
            "catalogue": run.catalogue,
            "seed": str(run.seed),
            "budget": run.budget,
            "strict": str(run.strict).lower(),
            "command": run.command,
        },
    )
    for result in run.requirements:
        for check in result.checks:
            _testcase(suite, run, result, check)
    if lacking := outline.shortfall(run):
        case = Xml.SubElement(suite, "testcase", classname="RUN", name="RUN the run is complete", time="0")
        text = "What is missing here was not looked at."
        kind = "process lost" if run.process_lost else "nothing checked" if run.complete else "interrupted"
        _child(case, "error", lacking, text, kind)
    tally = {
        "tests": str(len(suite.findall("testcase"))),
        "failures": str(len(suite.findall("testcase/failure"))),
        "errors": str(len(suite.findall("testcase/error"))),
    }
    skipped = str(len(suite.findall("testcase/skipped")))
    seconds = f"{run.seconds:.3f}"
    suite.attrib = {
        "name": visible(f"store-orders-conformance {run.target}"),
        **tally,
        "skipped": skipped,
        "time": seconds,
        "timestamp": visible(run.started),
    }
    root = Xml.Element("testsuites", {"name": "store-orders-conformance", **tally, "time": seconds})
    root.append(suite)
    Xml.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + Xml.tostring(root, encoding="unicode") + "\n"


def _testcase(suite: Xml.Element, run: Run, result: RequirementResult, check: CheckResult) -> None:
    row = result.requirement
    own = outline.name(check)
    case = Xml.SubElement(
        suite,
        "testcase",
        classname=visible(row.family),
        name=visible(f"{row.id} {row.title}" + (f" ({own})" if own else "")),
        time=f"{check.seconds:.3f}",
    )
    _properties(
        case,
        {
            "requirement": row.id,
            "level": row.level.value,
            "section": row.section,
            "status": check.status.value,
            "exchanges": " ".join(map(str, check.exchanges)),
        },
    )
    if check.status is Status.PASSED:
        return
    message = check.message or check.status.value
    text = _explanation(run, result, check)
    if check.status is Status.EXCLUDED:
        _child(case, "skipped", message, text, "excluded")
    elif result.waiver:
        said = f"waived until {result.waiver.expires}: {result.waiver.reason}"
        _child(case, "skipped", said, text, "waived")
    elif not outline.gates(run, result):
        _child(case, "skipped", f"{row.level}, {check.status}: {message}", text, check.status.value)
    elif check.status is Status.FAILED:
        _child(case, "failure", message, text, "failed")
    else:
        _child(case, "error", f"{check.status}: {message}", text, check.status.value)


def _explanation(run: Run, result: RequirementResult, check: CheckResult) -> str:
    """The text of a test case that did not pass: what is asked, by which clause, and what was found."""
    row = result.requirement
    fields = [
        (row.id, f"{row.sentence} ({row.level}, section {row.section})"),
        ("Clause", row.clause),
    ]
    found = [shown for shown in outline.evidence(run, result) if shown.check is check]
    if not any(shown.received in check.message for shown in found):
        fields.append((check.status.capitalize(), check.message))
    if result.waiver:
        fields.append(("Waived", " ".join(filter(None, (result.waiver.reason, result.waiver.link)))))
    for shown in found:
        fields += [
            ("Expected", shown.expected),
            ("Received", shown.received),
            ("Exchange", shown.shown),
            ("Orders placed for it", shown.orders),
            ("curl", shown.curl),
        ]
    lines = (f"{label}: " + visible(text, keep="\n") for label, text in fields if text)
    return "\n".join(lines)


def _properties(parent: Xml.Element, values: dict[str, str]) -> None:
    properties = Xml.SubElement(parent, "properties")
    for name, value in values.items():
        Xml.SubElement(properties, "property", name=name, value=visible(value))


def _child(case: Xml.Element, tag: str, message: str, text: str, kind: str) -> None:
    element = Xml.SubElement(case, tag, type=kind, message=cut(visible(message), _MESSAGE))
    element.text = f"\n{text}\n"
