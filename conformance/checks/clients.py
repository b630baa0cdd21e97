"""Header fields by which different kinds of clients say what they accept and send, and who they are."""

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
#: What script libraries in browsers accept by default.
SCRIPT = (("Accept", "application/json, text/plain, */*"),)
#: Announces JSON, as many clients do with or without a body.
SENDS_JSON = (("Content-Type", JSON),)
#: Accepts nothing compressed.
PLAIN = (("Accept-Encoding", "identity"),)
#: Prefers JSON, but names it last, after a blank: a service that reads only the first type, or does not trim, misses it
#: (RFC 9110 section 12.5.1).
NAMES_JSON_LAST = (("Accept", "text/plain;q=0.5, application/json"),)
#: What readers of French accept: errors are what is most often translated, and then they are no longer ASCII.
FRENCH = (("Accept-Language", "fr"),)
#: What clients of other interfaces accept, without JSON: a service may say that it cannot serve that (406), but must
#: send nothing else.
NAMES_OTHERS = (("Accept", "application/xml, text/xml;q=0.9, text/csv;q=0.8, application/x-ndjson;q=0.7"),)
#: What generated clients accept if errors may be problem details (RFC 9457). None are described here: all bodies are
#: application/json (section 1).
NAMES_PROBLEMS = (("Accept", "application/json, application/problem+json"),)
#: Prefers another encoding than that of JSON (RFC 8259 section 8.1), but accepts that as well. The field is deprecated
#: (RFC 9110 section 12.5.2): a firewall may refuse it.
OTHER_TEXT = (("Accept-Charset", "utf-16, utf-8;q=0.5"),)
#: Fields by which a proxy in front of a service, one of its developers or a health check may be let in without a key.
VOUCHING_FIELDS = (
    ("X-Forwarded-For", "127.0.0.1"), ("X-Real-IP", "127.0.0.1"), ("X-Forwarded-User", "admin"),
    ("X-Remote-User", "admin"), ("X-User-ID", "1"), ("X-Admin", "true"), ("X-Internal", "true"), ("X-Debug", "true"),
    ("X-Authenticated-User", "admin"), ("X-Consumer-Username", "admin"), ("X-Client-Verify", "SUCCESS"),
    ("X-Client-IP", "127.0.0.1"), ("True-Client-IP", "127.0.0.1"), ("Forwarded", "for=127.0.0.1"),
    ("X-Original-URI", "/"), ("X-Forwarded-Uri", "/"), ("X-Middleware-Subrequest", "middleware"),
    ("X-Auth-Request-User", "admin"), ("Remote-User", "admin"), ("X-WebAuth-User", "admin"),
    ("X-Authenticated-Userid", "1"), ("X-SSL-Client-Verify", "SUCCESS"),
    ("User-Agent", "kube-probe/1.29 GoogleHC/1.0"),
)  # fmt: skip


def accepts(check: str) -> str:
    """The Accept field of a check's requests, by the id of the check, unless it sets one. Clients differ here, and a
    service may have code for each kind: every second check names JSON; the others, and `preflight`, accept anything, as
    curl does."""
    return JSON if places().get(check, 0) % 2 else ANYTHING
