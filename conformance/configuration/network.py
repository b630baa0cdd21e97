"""How a service is reached: certificates and a proxy."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

from conformance.configuration.options import Options
from conformance.configuration.tables import Table
from conformance.target import ConfigError, Target
from conformance.urls import http_url


def file_at(path: str | None, where: str) -> str | None:
    """The `path` of a file, given at `where`, with `~` expanded. Raises ConfigError if there is no such file."""
    if path and not Path(path).expanduser().is_file():
        raise ConfigError(f"{where}: {path}: no such file; check the path")
    return str(Path(path).expanduser()) if path else None


def validate_certificates(target: Target, reader: Table, options: Options) -> None:
    """Raise ConfigError if a file cannot be used for its purpose."""
    for key, path in (("ca_bundle", target.ca_bundle), ("client_cert", target.client_cert)):
        if path is None or urlsplit(target.base_url).scheme != "https":
            continue
        import ssl  # takes its time to load, and few targets have such files

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        where = f"{reader.where(key, getattr(options, key))}: {path}"
        try:
            if key == "ca_bundle":
                context.load_verify_locations(path)
            else:
                context.load_cert_chain(path, password=_passphrase)
        except _PassphraseWantedError:
            pass  # OpenSSL asks for it when the key is used
        except (ssl.SSLError, OSError) as error:
            holding = "certificates" if key == "ca_bundle" else "a certificate and its private key"
            raise ConfigError(f"{where} cannot be used: {error}; it is a PEM file with {holding}") from None


class _PassphraseWantedError(Exception):
    pass


def _passphrase() -> str:
    raise _PassphraseWantedError


def proxy_at(url: str | None, where: str) -> str | None:
    """The `url` of a proxy, given at `where`. Raises ConfigError if it cannot be one."""
    if not url:
        return None
    if urlsplit(http_url(url, where)).scheme == "https":
        raise ConfigError(f"{where}: {url!r} is a proxy that is itself spoken to over TLS; give its http address")
    return url
