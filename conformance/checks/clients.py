"""Header fields by which clients of different kinds say what they take, and send."""

from __future__ import annotations

from conformance.check import places
from conformance.transport.request import ANYTHING

JSON = "application/json"
#: What clients of JSON interfaces accept.
NAMES_JSON = (("Accept", JSON),)
#: How browsers ask. They accept JSON, too: all bodies are JSON (section 1), whoever asks.
BROWSER = (
    ("User-Agent", "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"),
    ("Accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"),
    ("Accept-Language", "de-DE,de;q=0.9,en;q=0.8"),
)
#: What libraries for scripts in browsers accept unless told otherwise.
SCRIPT = (("Accept", "application/json, text/plain, */*"),)
#: Says that JSON is sent, as many clients do with or without a body.
SENDS_JSON = (("Content-Type", JSON),)
#: Takes nothing compressed.
PLAIN = (("Accept-Encoding", "identity"),)
#: Prefers JSON, but names it last, behind a blank: whoever reads only the first type, or does not trim, misses it
#: (RFC 9110 section 12.5.1).
NAMES_JSON_LAST = (("Accept", "text/plain;q=0.5, application/json"),)
#: What readers of French accept: errors are what is most often translated, and then is not ASCII any more.
FRENCH = (("Accept-Language", "fr"),)
#: What clients of other interfaces accept. Nothing in it is JSON: a service may say so (406), but send nothing else.
NAMES_OTHERS = (("Accept", "application/xml, text/xml;q=0.9, text/csv;q=0.8"),)
#: What generated clients accept where errors may be problem details (RFC 9457). None are described here: all bodies are
#: application/json (section 1).
NAMES_PROBLEMS = (("Accept", "application/json, application/problem+json"),)
#: Text of another encoding than that of JSON (RFC 8259 section 8.1), which will do as well. The field is deprecated
#: (RFC 9110 section 12.5.2): a firewall may refuse it.
OTHER_TEXT = (("Accept-Charset", "utf-16, utf-8;q=0.5"),)


def accepts(check: str) -> str:
    """The Accept field of the requests of a check, by its id, unless the check sets one. Clients differ in this, and a
    service may have code for each kind: every second check names JSON, the others accept anything, as curl does; so
    does `preflight`, which is no check."""
    return JSON if places().get(check, 0) % 2 else ANYTHING
