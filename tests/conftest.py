"""What all tests share: how Hypothesis searches (the same examples every time), and a certificate for loopback."""

from __future__ import annotations

import gc
import os
import signal
import ssl
import subprocess
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from filelock import FileLock
from hypothesis import HealthCheck, settings
from pipelines import PROJECT, Runner, oldest_libraries
from programs import program

from conformance import outcomes
from conformance.plugin import MARKERS
from conformance.runner.reference import ReferenceServer

settings.register_profile(
    "harness",
    deadline=None,
    derandomize=True,
    database=None,
    max_examples=50,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("harness")


#: How wide and colourful output is to be, by what a pipeline or a terminal may have set: not that of tests.
LOOKS = ("FORCE_COLOR", "CLICOLOR_FORCE", "NO_COLOR", "COLUMNS", "LINES")


def pytest_configure(config: pytest.Config) -> None:
    """Announce the markers of the suite's checks, which are imported here without its plugin. And let no
    surroundings matter: under nohup, heed the end of the terminal all the same, since tests send that signal to
    programs they start, which would ignore it like us."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    for name in LOOKS:
        os.environ.pop(name, None)
    for marker in MARKERS:
        config.addinivalue_line("markers", marker)


def pytest_collection_finish() -> None:
    """Have the garbage collector leave alone what is there for good, thousands of tests, and come less often: it took a
    tenth of the time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 20, 100)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Fail a test that meets what makes pytest skip a check: here it was not expected."""
    report = yield
    if call.excinfo is not None and call.excinfo.errisinstance((outcomes.Inconclusive, outcomes.Excluded)):
        report.outcome = "failed"
        report.longrepr = item.repr_failure(call.excinfo)
    return report


@pytest.fixture(scope="module")
def reference() -> Iterator[ReferenceServer]:
    """A reference server in a process of its own."""
    server = ReferenceServer()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A PEM file with a self-signed certificate for 127.0.0.1 and its private key."""
    folder = tmp_path_factory.mktemp("tls")
    made = folder / "both.pem"
    asked = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=127.0.0.1"
    more = "-addext subjectAltName=IP:127.0.0.1 -keyout key.pem -out certificate.pem"
    subprocess.run([program("openssl"), *asked.split(), *more.split()], check=True, capture_output=True, cwd=folder)
    made.write_bytes((folder / "certificate.pem").read_bytes() + (folder / "key.pem").read_bytes())
    return made


@pytest.fixture
def server_context(certificate: Path) -> ssl.SSLContext:
    """The TLS side of a service with that certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built wheel, the same in every worker."""
    with alone(tmp_path_factory, "wheel") as folder:
        if not folder.exists():
            build = ["-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(PROJECT)]
            subprocess.run([sys.executable, *build], check=True, capture_output=True)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="session")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the commands of a fresh environment that holds the wheel, the oldest version of each library that
    the project says it works with, and nothing of the checkout; the action installs it, once for all workers."""
    with alone(tmp_path_factory, "environment") as folder:
        made = folder.exists()
        folder.mkdir(exist_ok=True)
        oldest = folder / "oldest.txt"
        oldest.write_text("\n".join(f"{name}=={version}" for name, version in oldest_libraries().items()) + "\n")
        runner = Runner(folder, action_path=wheel, environment={"PIP_CONSTRAINT": str(oldest)})
        assert made or runner.run("Install") == 0, runner.console
    (commands,) = (runner.temporary / "path").read_text(encoding="utf-8").split()
    return Path(commands)


@contextmanager
def alone(tmp_path_factory: pytest.TempPathFactory, name: str) -> Iterator[Path]:
    """A folder of all workers of pytest-xdist, which one of them at a time may fill."""
    own = tmp_path_factory.getbasetemp()
    common = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
    with FileLock(common / f"{name}.lock"):
        yield common / name
