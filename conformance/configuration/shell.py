"""What a reader's shell needs so that curl lines reach a service as the suite does."""

from __future__ import annotations

import shlex


def printing(file: str) -> str:
    """The command by which a shell prints the key in `file`."""
    return f"$(cat {'-- ' if file.startswith('-') else ''}{_for_shell(file)})"


def _for_shell(file: str) -> str:
    """The path `file`, which may begin with `~/`, as a word for a shell."""
    home, rest = ("~/", file[2:]) if file.startswith("~/") else ("", file)
    return home + shlex.quote(rest)


def curl_options(ca_bundle: str | None, client_cert: str | None, proxy: str | None) -> tuple[str, ...]:
    """The options by which curl reaches a service as the suite does, given these files and this URL."""
    options = []
    if ca_bundle:
        options.append(f"--cacert {_for_shell(ca_bundle)}")
    if client_cert:
        options.append(f"--cert {_for_shell(client_cert)}")
    if proxy:
        options.append(f"--proxy {shlex.quote(proxy)}")
    return tuple(options)
