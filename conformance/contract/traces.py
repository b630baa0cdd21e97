"""What the body of a failed request should not show: stack traces and file paths (ERR-4). Pure.

Covers the languages that services are written in, traces as text, and traces as objects in JSON.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from conformance.contract.jsontext import JsonText, integer, values

#: How many characters of a body are searched.
SEARCHED = 256 * 1024
#: Repetitions have bounds, and quoted text an end: otherwise a hostile text would be searched once for each of its
#: characters.
_STACK_TRACE = re.compile(
    r"Traceback \(most recent call last\)|File [\"'][^\"'\n]{1,500}[\"'], line \d+"  # Python
    r"|\bat [\w$.<>/]{1,300}\([^)\n]{0,200}\.\w{1,10}:\d{1,9}(?::\d{1,9})?\)"  # Java
    r"|\w\((?:Unknown Source|Native Method|\w{1,200}\.(?:java|kt|scala|groovy))\)|\.(?:java|kts?|scala|groovy):\d"
    r"|Caused by: (?:[\w$]{1,100}\.){1,20}[\w$]{0,100}(?:Exception|Error)\b"
    r"|\bat (?:[\w.<>]{1,500} )?\(?(?:(?:file://|node:)[^\s)]{1,500}|/[^\s)]{1,500}\.\w{1,10}):\d{1,9}:\d"  # Node
    r"|\w\.[cm]?[jt]sx?:\d{1,9}:\d"
    r"|goroutine \d+ \[|^panic: |\.go:\d+"  # Go
    r"|\bpanicked at [^\n]{1,500}:\d{1,9}:\d|\w\.rs:\d{1,9}:\d"  # Rust
    r"|\.rb:\d+:in |\.exs?:\d"  # Ruby, Elixir
    r"|#\d{1,9} [^\s()]{1,500}\.php\(\d|\w\.(?:php|phtml|inc)(?:</b>)? on line (?:<b>)?\d|Stack trace:"  # PHP
    r"|in \S{1,500}\.cs:line \d"  # .NET, also without line numbers: then two lines at least, the first with a dot
    r"|^[ \t]{0,20}at [\w<>`+$]{1,100}(?:\.[\w<>`+$,\[\]]{1,100}){1,20}\([^()\n]{0,500}\)\s{0,20}"
    r"^[ \t]{0,20}at [\w<>`+$.,\[\]]{1,500}\([^()\n]{0,500}\)",
    re.MULTILINE,
)
_FILE_PATH = re.compile(
    r"(?<![\w/.:])/(?:usr|var|srv|etc|root|tmp|Users)/[\w.-]+"
    # Directories with names that begin paths of URLs, too, and JSON pointers: two more parts, or one with an extension.
    r"|(?<![\w/.:])/(?:home|opt|app|code|workspace|mnt|builds|nix|workspaces|go(?=/(?:src|pkg|bin)/)"
    r"|data(?!/(?:attributes|relationships|meta|\d+)(?![\w.-])))/"
    r"[\w.-]{1,500}(?:/[\w.-]|(?<=\.)[A-Za-z]\w{0,9}\b)"
    r"|(?i:\bfile:///)[\w.%-]+"
    r"|\b[A-Za-z]:\\(?:[\w .-]+\\)+[\w .-]*"
)
#: Names of source files, as in the frames of stack traces in JSON.
_SOURCE_FILE = re.compile(
    r"[^\n]{0,500}\w\.(?:java|kts?|scala|groovy|py|rb|php|[cm]?[jt]sx?|go|rs|cs|fs|vb|exs?|erl|swift)"
)


@dataclass(frozen=True)
class Traces:
    """What a body shows: an object that is a frame of a stack trace, and the patterns that match in `text`, each with
    what it finds."""

    frame: dict[str, Any] | None
    text: str
    patterns: tuple[tuple[re.Pattern[str], str], ...]


def traces(body: bytes, json: JsonText | None) -> Traces:
    """What `body` shows. If it is JSON, it is also given as `json`, and its unescaped strings are searched."""
    strings = None if json is None else (item for item in values(json.value) if isinstance(item, str))
    text = (body.decode("utf-8", "replace") if strings is None else "\n".join(strings))[:SEARCHED]
    patterns = ((_STACK_TRACE, "a stack trace"), (_FILE_PATH, "a file path"))
    found = tuple((pattern, what) for pattern, what in patterns if pattern.search(text))
    return Traces(None if json is None else _frame(json.value), text if found else "", found)


def _frame(value: Any) -> dict[str, Any] | None:
    """The first object in a JSON value that is a frame: it has a source file with a line or the name of a method, or
    looks like an element of a Java trace."""
    return next((item for item in values(value) if isinstance(item, dict) and _is_frame(item)), None)


def _is_frame(item: dict[str, Any]) -> bool:
    files = [item[name] for name in ("fileName", "filename", "file") if isinstance(item.get(name), str)]
    numbered = any(integer(item.get(name)) is not None for name in ("lineNumber", "lineno", "line"))
    named = any(isinstance(item.get(name), str) for name in ("methodName", "method", "function"))
    of_java = {"className", "methodName", "lineNumber"} <= item.keys()
    return of_java or ((numbered or named) and any(map(_SOURCE_FILE.fullmatch, files)))
