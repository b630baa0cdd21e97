"""What is judged on every answer of a run, whichever check requested it.

Each judge is a function of one answer. It returns a sentence that says what is wrong, None if the requirement is met,
or NOT_APPLICABLE if the answer says nothing about it. `observer` notes the findings in the exchange; `universal` folds
them when the run is over.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from email.utils import format_datetime, parsedate_to_datetime
from enum import Enum
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from conformance.contract.jsontext import NotJson, TooDeep, integer
from conformance.contract.listing import Listing
from conformance.contract.validators import error_problems, shown
from conformance.text import plural
from conformance.transport.answer import Answer
from conformance.transport.evidence import Trouble
from conformance.transport.request import STATUSES, Allowed, Operation
from conformance.transport.retries import GATEWAY, pause, too_many


class _NotApplicable(Enum):
    """The finding for an answer that says nothing about a requirement."""

    NOT_APPLICABLE = "not applicable"


NOT_APPLICABLE: Final = _NotApplicable.NOT_APPLICABLE
Finding = str | None | _NotApplicable

#: The statuses whose body must be an Error (section 7).
ERRORS = frozenset({401, 404})

_CHALLENGE = re.compile(r"(?:^|,)\s*Bearer(?=\s|,|$)", re.IGNORECASE)
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*("|\\?$)')
# Between the commas of WWW-Authenticate, strings emptied: a scheme, alone, with a token68 or its first parameter; or a
# further parameter (RFC 9110 section 11.6.1). Elements may be empty (section 5.6.1).
_TOKEN = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_PARAMETER = rf'{_TOKEN}[ \t]*=[ \t]*(?:{_TOKEN}|"")'
_ELEMENT = re.compile(rf"(?:{_TOKEN}(?:[ \t]+(?:[0-9A-Za-z._~+/-]+=*|{_PARAMETER}))?|{_PARAMETER})?")
# Parameters may follow (RFC 9651 section 3.3): ;name or ;name=value.
_DEPRECATION = re.compile(r"@-?[0-9]{1,15}(?: *; *[a-z*][a-z0-9_.*-]*(?:=(?:[^;\", ]+|\"[^\"]*\"))?)*")


def well_formed(answer: Answer) -> bool:
    """Whether the contract describes the request, and the answer is complete."""
    described = answer.request.operation in STATUSES and answer.request.allowed is not Allowed.OPEN
    return described and answer.status is not None


def _json_problem(answer: Answer) -> str | None:
    """Why the body is not JSON sent as such (section 1); None if it is. Raises TooDeep."""
    if answer.media_type != "application/json":
        given = answer.header("content-type")
        if given is None:
            return f"it has no Content-Type{'' if answer.body else ' and no body'}, where application/json is due"
        return f"its media type is {shown(given)}, not application/json"
    if answer.request.operation is Operation.LIST and answer.listing is not None:
        return None
    try:
        answer.json  # noqa: B018 - read for its errors
    except TooDeep:  # it may be JSON, or not
        raise
    except NotJson as error:
        return f"the body is not a JSON text: {error}"
    return None


def _error_object(answer: Answer) -> dict[str, Any] | None:
    """The JSON object in the body of a 401 or 404, else None: whether the body is an Error at all is decided by
    ERR-1."""
    return answer.json_object if answer.status in ERRORS and well_formed(answer) else None


def error_shape(answer: Answer) -> Finding:
    """ERR-1: every 401 and 404 is an Error, as application/json."""
    if answer.status not in ERRORS or not well_formed(answer):
        return NOT_APPLICABLE
    problem = _json_problem(answer)
    if problem is None:
        problems = error_problems(answer.json.value)
        problem = "; ".join(problems) or None
    return problem and f"a {answer.status}: {problem}"


def error_status(answer: Answer) -> Finding:
    """ERR-2: `status` in the body equals the HTTP status."""
    body = _error_object(answer)
    number = None if body is None else integer(body.get("status"))
    if number is None:
        return NOT_APPLICABLE
    return None if number == answer.status else f"a {answer.status} whose body says status {number}"


def error_texts(answer: Answer) -> Finding:
    """ERR-3: `code` and `message` say something."""
    body = _error_object(answer)
    if body is None:
        return NOT_APPLICABLE
    empty = [name for name in ("code", "message") if isinstance(body.get(name), str) and not body[name].strip()]
    return f"a {answer.status} whose {' and '.join(empty)} is empty" if empty else None


def error_reveals(answer: Answer) -> Finding:
    """ERR-4: no key, stack trace or file path in the answer to a request that failed."""
    if answer.request.operation is Operation.OTHER or answer.status is None or answer.status < 400:
        return NOT_APPLICABLE
    if answer.exchange.revealed_key:
        return f"a {answer.status} that repeats the API key"
    traces = answer.text.traces
    if traces.frame is not None:
        return f"a {answer.status} that shows a stack trace: {shown(traces.frame)}"
    for pattern, what in traces.patterns:
        found = pattern.search(_own_path(answer).sub(" ", traces.text))
        if found:
            return f"a {answer.status} that shows {what}: {shown(found[0])}"
    return None


def _own_path(answer: Answer) -> re.Pattern[str]:
    """Finds the path of the request, as sent or decoded, whole or without its last part: a base path may look like that
    of a file."""
    path = urlsplit(answer.exchange.url).path
    whole = {form for text in (path, path.rpartition("/")[0]) for form in (text, unquote(text))} - {""}
    forms = "|".join(map(re.escape, sorted(whole, key=len, reverse=True)))
    return re.compile(rf"(?<![\w.-])(?:{forms})")


def conflict_body(answer: Answer) -> Finding:
    """ERR-5: a 409 has no body, or a JSON one."""
    if answer.status != 409 or not well_formed(answer):
        return NOT_APPLICABLE
    problem = _json_problem(answer) if answer.body else None
    return problem and f"a 409: {problem}"


def challenge(answer: Answer) -> Finding:
    """AUTH-7: a 401 carries WWW-Authenticate, well-formed, with a Bearer challenge (RFC 9110 section 11.6.1)."""
    if answer.status != 401 or not well_formed(answer):
        return NOT_APPLICABLE
    header = answer.header("www-authenticate")
    if header is None:
        return "a 401 without WWW-Authenticate"
    plain = _QUOTED.sub(lambda match: '""' if match[1] == '"' else match[0], header)
    if not _CHALLENGE.search(plain):
        return f"a 401 with WWW-Authenticate: {shown(header)}"
    broken = next((part for part in plain.split(",") if not _ELEMENT.fullmatch(part.strip(" \t"))), None)
    return broken and f"a 401 with WWW-Authenticate: {shown(header)}, which is not a list of challenges"


def is_listing(answer: Answer) -> bool:
    """Whether this is the listing, requested with the key: what others get with 200 is for AUTH to judge."""
    listed = answer.status == 200 and answer.request.operation is Operation.LIST
    return listed and answer.request.credential.valid and well_formed(answer)


def listing_is_array(answer: Answer) -> Finding:
    """LIST-1: a 200 of the listing is a JSON array, as application/json."""
    if not is_listing(answer):
        return NOT_APPLICABLE
    problem = _json_problem(answer)
    if problem is None and answer.listing is None:
        problem = f"the body is {shown(answer.json.value)}, not an array"
    return problem and f"a listing: {problem}"


def _judged(answer: Answer, problems: Callable[[Listing], Iterable[str]]) -> Finding:
    """The `problems` of the listing in an answer, if it has any elements."""
    if not is_listing(answer) or answer.listing is None or not answer.listing.elements:
        return NOT_APPLICABLE
    return "; ".join(problems(answer.listing)) or None


def elements_are_orders(answer: Answer) -> Finding:
    """LIST-2: each element of a listing is an Order (section 2)."""
    return _judged(answer, Listing.problems)


def ids_are_unique(answer: Answer) -> Finding:
    """LIST-4: no id stands more than once in a listing."""
    return _judged(answer, _doubled_ids)


def dates_are_rfc3339(answer: Answer) -> Finding:
    """LIST-10: each shipDate is a date-time by RFC 3339 section 5.6."""
    return _judged(answer, Listing.unconventional_dates)


def integers_and_names_are_plain(answer: Answer) -> Finding:
    """LIST-11: integers are written as literals of integers, and no object of an element has a name twice."""
    return _judged(answer, Listing.unconventional_integers)


def _doubled_ids(listing: Listing) -> list[str]:
    """The first few ids that occur more than once in a listing, each in a sentence."""
    return [f"id {number} occurs more than once in the listing" for number in listing.doubled_ids()[:3]]


def _trailing(answer: Answer, end: str) -> str | None:
    """What is wrong if bytes follow the `end` of a response on its connection; None if none do."""
    extra = answer.extra
    return f"{plural(len(extra), 'byte')} after {end} of the {answer.status}: {shown(extra)}" if extra else None


def no_content(answer: Answer) -> Finding:
    """CANCEL-2: nothing follows the header section of a 204 (RFC 9112 section 6.3). On raw connections, since clients
    hide it."""
    if answer.status != 204 or answer.request.operation is not Operation.CANCEL or answer.exchange.via != "wire":
        return NOT_APPLICABLE
    return _trailing(answer, "the header section")


def no_content_fields(answer: Answer) -> Finding:
    """CANCEL-12: a 204 has neither Content-Length nor Transfer-Encoding (RFC 9110 section 8.6, RFC 9112 6.1)."""
    if answer.status != 204 or answer.request.operation is not Operation.CANCEL:
        return NOT_APPLICABLE
    sent = [name for name in ("Content-Length", "Transfer-Encoding") if answer.header(name) is not None]
    return f"a 204 with {' and '.join(f'{name}: {shown(answer.header(name))}' for name in sent)}" if sent else None


def listed_status(answer: Answer) -> Finding:
    """HTTP-1: a well-formed request gets a status that its operation lists."""
    if not well_formed(answer) or answer.status is None:
        return NOT_APPLICABLE
    known = STATUSES[answer.request.operation]
    if answer.status in known or pause(answer) is not None:
        return None
    if answer.request.allowed in (Allowed.ANY_4XX, Allowed.SAME) and answer.client_error:
        return None
    if answer.request.allowed is Allowed.SAME and answer.status == 304:
        return None
    if answer.status in GATEWAY or too_many(answer.exchange):
        return NOT_APPLICABLE
    listed = ", ".join(map(str, sorted(known)))
    return f"{answer.exchange.received}, where {answer.request.operation} lists {listed}"


def _may_be_cut_off(answer: Answer) -> bool:
    """Whether a connection that ended early says nothing about the service. A firewall may hang up on a request that
    the contract does not describe. And a server that has not read a long request, or a body, to its end may lose part
    of its answer when it closes the connection (RFC 9112 section 9.6)."""
    request = answer.request
    no_head = not answer.exchange.http_version
    undescribed = request.allowed is Allowed.OPEN and (no_head or request.body is not None)
    return request.whole or request.credential.long or undescribed


def framing(answer: Answer) -> Finding:
    """HTTP-2: one complete response, in a version of the connection's protocol, with one way to tell its end (RFC 9112
    section 6), and nothing after it. What follows a 204 is CANCEL-2, and how it is framed CANCEL-12."""
    if answer.exchange.trouble == Trouble.BROKEN and not _may_be_cut_off(answer):
        return f"no complete HTTP response: {answer.exchange.detail}"
    if answer.status is None or answer.request.whole:  # at any target on the host something else may answer
        return NOT_APPLICABLE
    version = answer.exchange.http_version
    if version and version != "HTTP/2" and not version.startswith("HTTP/1."):
        return f"a {answer.status} whose status line has {version}, over a connection of HTTP/1.1"
    if answer.status == 204:
        return None
    if (trailing := _trailing(answer, "the end")) is not None:
        return trailing
    coding, length = answer.header("transfer-encoding"), answer.header("content-length")
    if coding is None or version == "HTTP/2":  # where frames tell the end
        return None
    if length is not None:
        return f"a {answer.status} with both Content-Length: {shown(length)} and Transfer-Encoding: {shown(coding)}"
    return f"a {answer.status} in HTTP/1.0 with Transfer-Encoding: {shown(coding)}" if version == "HTTP/1.0" else None


def lifecycle_headers(answer: Answer) -> Finding:
    """PET-2: Deprecation is a structured date (RFC 9745 section 2.1), Sunset an HTTP date (RFC 8594 section 3)."""
    deprecation, sunset = answer.header("deprecation"), answer.header("sunset")
    if deprecation is None and sunset is None:
        return None if answer.request.operation is Operation.PET and answer.status else NOT_APPLICABLE
    problems = []
    if deprecation is not None and not _DEPRECATION.fullmatch(deprecation.strip()):
        problems.append(f"Deprecation: {shown(deprecation)}, not a structured date such as @1688169599")
    if sunset is not None and not _is_http_date(sunset.strip()):
        problems.append(f"Sunset: {shown(sunset)}, not an HTTP date")
    return "; ".join(problems) or None


def _is_http_date(text: str) -> bool:
    """Whether it is an IMF-fixdate (RFC 9110 section 5.6.7), the only form that may be sent."""
    try:
        return format_datetime(parsedate_to_datetime(text), usegmt=True) == text
    except (ValueError, OverflowError):
        return False


#: Requirement -> judge, in the order of the catalogue.
JUDGES: dict[str, Callable[[Answer], Finding]] = {
    "AUTH-7": challenge,
    "LIST-1": listing_is_array,
    "LIST-2": elements_are_orders,
    "LIST-4": ids_are_unique,
    "LIST-10": dates_are_rfc3339,
    "LIST-11": integers_and_names_are_plain,
    "CANCEL-2": no_content,
    "CANCEL-12": no_content_fields,
    "ERR-1": error_shape,
    "ERR-2": error_status,
    "ERR-3": error_texts,
    "ERR-4": error_reveals,
    "ERR-5": conflict_body,
    "HTTP-1": listed_status,
    "HTTP-2": framing,
    "PET-2": lifecycle_headers,
}
