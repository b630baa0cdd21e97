"""A private certificate authority for tests."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import trustme


class Authority:
    """An authority, whose certificate lies in a folder: `ca.pem`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._authority = trustme.CA()
        self._authority.cert_pem.write_to_path(str(folder / "ca.pem"))

    def certify(self, name: str, *hosts: str, days: int = 2) -> Path:
        """Sign a certificate for `hosts`, names or addresses, good for so many days from now on, or till so many ago.
        Returns its file in the folder, `NAME.pem`, which holds its private key as well."""
        made = self._authority.issue_cert(*hosts, not_after=datetime.now(UTC) + timedelta(days))
        file = self._folder / f"{name}.pem"
        made.private_key_and_cert_chain_pem.write_to_path(str(file))
        return file
