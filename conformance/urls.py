"""The URLs in a configuration: which are valid, and which mean the same."""

from __future__ import annotations

import posixpath
import re
import socket
from contextlib import suppress
from ipaddress import IPv4Address, ip_address
from urllib.parse import SplitResult, unquote, urlsplit

from conformance.target import ConfigError

#: Host and port as they stand in a URL, an IPv6 address in brackets; `_NUMERIC`: those whose host can be nothing but an
#: IP address.
_AUTHORITY = re.compile(r"(?:\[[^\[\]]*\]|[^\[\]:]+)(?::[0-9]*)?")
_NUMERIC = re.compile(r"\[.*|[0-9]+(?:\.[0-9]+){3}(?::.*)?")


def port_of(parts: SplitResult) -> int:
    """The port of a URL, that of its scheme where it names none. Raises ValueError."""
    return parts.port or (443 if parts.scheme == "https" else 80)


def address(url: str) -> object:
    """The same value for all spellings of a base URL, and for http and https."""
    try:
        parts = urlsplit(url.strip())
        path = posixpath.normpath(re.sub("/+", "/", f"/{unquote(parts.path)}"))
        return _host((parts.hostname or "").rstrip(".")), 443 if port_of(parts) == 80 else port_of(parts), path
    except ValueError:
        return url  # of a target that is not in this run: no concern of it


def is_loopback(host: str) -> bool:
    """Whether `host` is this machine, by name or address."""
    name = host.rstrip(".")
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        ip = ip_address(host)
    except ValueError:
        try:
            ip = IPv4Address(socket.inet_aton(host))  # 127.1, say
        except OSError:
            return False
    ip = getattr(ip, "ipv4_mapped", None) or ip
    return ip.is_loopback or ip.is_unspecified  # who connects to 0.0.0.0 comes to this machine


def _host(name: str) -> str:
    """The same value for all ways to write an IP address (10.0.0.7 is 10.7, too), and for all names of this machine."""
    if is_loopback(name):
        return "localhost"
    with suppress(OSError):
        return socket.inet_ntoa(socket.inet_aton(name))
    with suppress(ValueError):
        return str(ip_address(name))
    return name


def http_url(text: str, where: str, *, name: str = "") -> str:
    """`text`, given at `where`, if it is an http or https URL without credentials. Raises ConfigError, which does not
    repeat the query, since some keep a key there; with a `name` for the text, it repeats nothing."""
    shown = name or repr(text.partition("?")[0])
    if "@" in text.partition("//")[2].partition("/")[0]:
        raise ConfigError(f"{where}: credentials in a URL end up in logs; take them out")
    try:
        parts = urlsplit(text)
        host, whole = parts.hostname or "", _AUTHORITY.fullmatch(parts.netloc) is not None
        valid = parts.scheme in ("http", "https") and whole and parts.port != 0
        host.encode("idna")  # as whoever looks it up does, who raises this then
        if _NUMERIC.fullmatch(parts.netloc):
            ip_address(host)  # as httpx does, which takes neither 10.0.0.256 nor 10.0.0.07
    except ValueError:
        valid = False
    if not valid:
        raise ConfigError(f"{where}: {shown} is no http or https URL; give a host, and a port from 1 to 65535 if any")
    if not re.fullmatch(r"[!-~]+", text):
        raise ConfigError(
            f"{where}: {shown} or its query holds a character that no URL can carry (blank, control or non-ASCII); "
            "percent-encode it, or in the name of a host write xn--…"
        )
    return text


def base_url_of(text: str, where: str, *, name: str = "") -> str:
    """The base URL without a trailing slash; it must end with /v1 (BASE-1, section 1). Raises ConfigError, which
    repeats it unless it has a `name`."""
    url = http_url(text.rstrip("/"), where, name=name)
    parts = urlsplit(url)
    if "?" in url or "#" in url:
        # Not repeated: some keep a key there.
        raise ConfigError(f"{where}: has a query or fragment; a base URL ends with /v1")
    if not parts.path.endswith("/v1"):
        meant = "" if name else f": did you mean {re.sub('/[vV][0-9.]+$', '', url)}/v1?"
        raise ConfigError(
            f"{where}: {name or repr(text)} does not end with /v1. Each base address of the service ends with its "
            f"version segment (specification, section 1; requirement BASE-1){meant}"
        )
    return url
