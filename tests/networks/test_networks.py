"""Real networks between the suite and the reference server: nginx, TLS of both sides, HTTP/2, proxies, IPv6."""

from __future__ import annotations

import contextlib
import http.server
import json
import re
import select
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from authority import Authority
from commands import PATIENTLY, command
from patience import PATIENCE
from programs import program

from conformance.runner.reference import ReferenceServer

EVERYTHING = ("--budget", "quick", "--seed", "1", *PATIENTLY)
SOME = ("--only", "LIST-1,CANCEL-1,CANCEL-2,AUTH-2,HTTP", *EVERYTHING)


@pytest.fixture(scope="module")
def pki(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a private authority, a server's certificate for loopback, and a client's."""
    folder = tmp_path_factory.mktemp("pki")
    authority = Authority(folder)
    for name in ("server", "client"):
        authority.certify(name, "127.0.0.1", "::1", "localhost")
    return folder


NGINX = """
daemon off; pid {folder}/nginx.pid; error_log {folder}/error.log; worker_processes 1;
events {{ worker_connections 256; }}
http {{
  access_log off; client_body_temp_path {folder}/b; proxy_temp_path {folder}/p; fastcgi_temp_path {folder}/f;
  uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
  server {{
    listen 127.0.0.1:{tls} ssl http2; listen [::1]:{tls} ssl http2; listen 127.0.0.1:{plain}; listen [::1]:{plain};
    ssl_certificate {pki}/server.pem; ssl_certificate_key {pki}/server.pem;
    {client}
    location /shop/eu/v1/ {{ proxy_pass {upstream}/; proxy_http_version 1.1; }}
    location /v1/ {{ proxy_pass {upstream}/; }}
  }}
}}
"""


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@contextlib.contextmanager
def nginx(folder: Path, pki: Path, reference: ReferenceServer, client: str = "") -> Iterator[tuple[int, int]]:
    """nginx in front of the reference server: its ports for TLS and for plain HTTP."""
    server = program("nginx")
    tls, plain = free_port(), free_port()
    text = NGINX.format(
        folder=folder, pki=pki, tls=tls, plain=plain, client=client, upstream=reference.address.base_url
    )
    (folder / "nginx.conf").write_text(text, encoding="utf-8")
    process = subprocess.Popen([server, "-e", str(folder / "error.log"), "-c", str(folder / "nginx.conf")])
    try:
        deadline = time.monotonic() + PATIENCE
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", plain), 1):
                break
            assert time.monotonic() < deadline, (folder / "error.log").read_text(encoding="utf-8")
            time.sleep(0.05)
        yield tls, plain
    finally:
        process.terminate()
        process.wait(PATIENCE)


@pytest.fixture(scope="module")
def front(tmp_path_factory: pytest.TempPathFactory, pki: Path, reference: ReferenceServer) -> Iterator[tuple[int, int]]:
    with nginx(tmp_path_factory.mktemp("nginx"), pki, reference) as ports:
        yield ports


def judged(folder: Path, reference: ReferenceServer, base_url: str, *words: str) -> tuple[int, dict[str, Any], str]:
    """Exit status, results and console of a run against `base_url`."""
    where = ("--base-url", base_url, "--api-key-env", "KEY", "--states-url", reference.address.states_url)
    done = command(folder, "run", *where, *words, KEY=reference.address.key)
    result = json.loads((folder / "reports" / "target" / "results.json").read_text(encoding="utf-8"))
    return done.status, result, done.said


def observed(result: dict[str, Any], topic: str) -> Any:
    (value,) = [row["value"] for row in result["observations"] if row["topic"] == topic]
    return value


def test_http_2_behind_nginx(tmp_path: Path, pki: Path, reference: ReferenceServer, front: tuple[int, int]) -> None:
    """Everything, over TLS with a private authority; raw connections speak HTTP/1.1 to the same port."""
    words = ("--ca-bundle", str(pki / "ca.pem"), *EVERYTHING)
    status, result, said = judged(tmp_path, reference, f"https://127.0.0.1:{front[0]}/v1", *words)
    assert status == 0, said
    assert set(observed(result, "HTTP version")) == {"HTTP/2", "HTTP/1.1"}
    assert {row["status"] for row in result["requirements"]} == {"passed"}


def test_http_2_without_keep_alive(tmp_path: Path, pki: Path, reference: ReferenceServer) -> None:
    """nginx says before each answer that it is the last one."""
    folder = tmp_path / "nginx"
    folder.mkdir()
    with nginx(folder, pki, reference, "keepalive_timeout 0;") as (tls, _):
        words = ("--ca-bundle", str(pki / "ca.pem"), *SOME)
        status, result, said = judged(tmp_path, reference, f"https://127.0.0.1:{tls}/v1", *words)
    assert status == 0, said
    assert "HTTP/2" in observed(result, "HTTP version")


@pytest.mark.parametrize("base_url", ["http://127.0.0.1:{plain}/shop/eu/v1", "https://[::1]:{tls}/v1"])
def test_a_base_path_and_ipv6(
    tmp_path: Path, pki: Path, reference: ReferenceServer, front: tuple[int, int], base_url: str
) -> None:
    words = ("--ca-bundle", str(pki / "ca.pem"), *SOME)
    status, _, said = judged(tmp_path, reference, base_url.format(tls=front[0], plain=front[1]), *words)
    assert status == 0, said


def test_a_client_certificate(tmp_path: Path, pki: Path, reference: ReferenceServer) -> None:
    """Without it, nginx answers 400 to everything; that is no Store Orders Service, and says why."""
    client = f"ssl_client_certificate {pki}/ca.pem; ssl_verify_client on;"
    folder = tmp_path / "nginx"
    folder.mkdir()
    with nginx(folder, pki, reference, client) as (tls, _):
        words = ("--ca-bundle", str(pki / "ca.pem"), *SOME)
        base_url = f"https://127.0.0.1:{tls}/v1"
        status, _, said = judged(tmp_path, reference, base_url, *words, "--client-cert", str(pki / "client.pem"))
        assert status == 0, said
        status, _, said = judged(tmp_path, reference, base_url, *words)
        assert status == 3
        assert "does not look like a Store Orders Service" in said


# --- forward proxies


class ForwardProxy(http.server.BaseHTTPRequestHandler):
    """Passes on requests in absolute form, and opens tunnels."""

    seen: list[str] = []

    def do_CONNECT(self) -> None:
        self.seen.append(self.requestline)
        host, _, port = self.path.rpartition(":")
        with socket.create_connection((host.strip("[]"), int(port)), 10) as there:
            self.send_response(200)
            self.end_headers()
            pump(self.connection, there)
        self.close_connection = True

    def forward(self) -> None:
        self.seen.append(self.requestline)
        parts = urlsplit(self.path)
        head = f"{self.command} {parts.path}{'?' if parts.query else ''}{parts.query} HTTP/1.1\r\n"
        head += "".join(f"{name}: {value}\r\n" for name, value in self.headers.items())
        with socket.create_connection((parts.hostname or "", parts.port or 80), 10) as there:
            there.sendall(f"{head}\r\n".encode("latin-1") + self.rfile.read(int(self.headers.get("Content-Length", 0))))
            while piece := there.recv(65536):  # the client asks for the connection to be closed
                self.wfile.write(piece)
        self.close_connection = True

    do_GET = do_DELETE = do_HEAD = do_OPTIONS = forward  # noqa: N815

    def log_message(self, *words: object) -> None:
        pass


def pump(one: socket.socket, other: socket.socket) -> None:
    """Pass bytes on in both directions until one side closes."""
    while True:
        readable, _, _ = select.select([one, other], [], [], 10)
        for source in readable:
            piece = source.recv(65536)
            if not piece:
                return
            (other if source is one else one).sendall(piece)
        if not readable:
            return


@pytest.fixture
def proxy() -> Iterator[str]:
    ForwardProxy.seen = []
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), ForwardProxy)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_forward_proxy_without_tunnels(
    tmp_path: Path, reference: ReferenceServer, proxy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What takes raw connections is excluded, and the rest is judged."""
    monkeypatch.setattr(ForwardProxy, "do_CONNECT", lambda self: self.send_error(403))
    address = reference.address.base_url
    status, result, said = judged(tmp_path, reference, address, "--proxy", proxy, "--budget", "quick")
    assert status == 0, said
    assert {row["id"] for row in result["requirements"] if row["status"] != "passed"} == {"CANCEL-2", "CANCEL-10"}
    assert "opens no tunnel to" in said
    where = ("--base-url", address, "--api-key-env", "KEY", "--states-url", reference.address.states_url)
    done = command(tmp_path, "doctor", *where, "--proxy", proxy, KEY=reference.address.key)
    assert done.status == 0, done.said
    assert re.search(r"note +connection: .* opens no tunnel to", done.out)


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_forward_proxy(
    tmp_path: Path, pki: Path, reference: ReferenceServer, front: tuple[int, int], proxy: str, scheme: str
) -> None:
    """Every request to the service goes through it, the raw ones too; of TLS it sees tunnels only."""
    port = front[0] if scheme == "https" else front[1]
    words = ("--ca-bundle", str(pki / "ca.pem"), "--proxy", proxy, *SOME)
    status, result, said = judged(tmp_path, reference, f"{scheme}://localhost:{port}/v1", *words)
    assert status == 0, said
    kinds = {line.split(" ")[0] for line in ForwardProxy.seen}
    assert kinds == ({"CONNECT"} if scheme == "https" else {"CONNECT", "GET", "DELETE", "HEAD", "OPTIONS"})
    assert len(ForwardProxy.seen) > 0.5 * result["run"]["requests"]
