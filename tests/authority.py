"""A private certificate authority for tests, made by openssl."""

from __future__ import annotations

import subprocess
from pathlib import Path

KEY = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes"


def openssl(folder: Path, words: str) -> None:
    """Run openssl with these words in `folder`."""
    subprocess.run(["openssl", *words.split()], check=True, capture_output=True, cwd=folder)


def make_authority(folder: Path) -> None:
    """Put an authority into `folder`: `ca.pem`, and its key."""
    openssl(folder, f"req -x509 {KEY} -days 2 -subj /CN=authority -keyout ca.key -out ca.pem")


def certify(folder: Path, name: str, alternatives: str, days: int = 2) -> None:
    """Have the authority of `folder` sign a certificate for the `alternatives` (`IP:127.0.0.1`, `DNS:…`), good for so
    many days from now on, or till so many ago: `NAME.pem`, and its key `NAME.key`."""
    (folder / "names").write_text(f"subjectAltName={alternatives}\n", encoding="utf-8")
    openssl(folder, f"req {KEY} -subj /CN={name} -keyout {name}.key -out {name}.csr")
    signed = "-CA ca.pem -CAkey ca.key -CAcreateserial -extfile names"
    openssl(folder, f"x509 -req -in {name}.csr {signed} -days {days} -out {name}.pem")
