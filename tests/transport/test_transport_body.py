"""Bodies as they come in: whatever the coding and the pieces, the content, or what keeps it from being had."""

from __future__ import annotations

import gzip
import tracemalloc
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.transport.body import Body, Miscoded, Unreadable


def bare(content: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(content) + packer.flush()


PACKERS = {
    "": bytes, "identity": bytes, "gzip": gzip.compress, "x-gzip": gzip.compress, " GZIP ": gzip.compress,
    "deflate": zlib.compress, "Deflate": bare,
    "deflate, gzip": lambda content: gzip.compress(zlib.compress(content)),
    "gzip,identity": gzip.compress, ", gzip ,": gzip.compress, "identity, identity, identity": bytes,
}  # fmt: skip


def received(coding: str, sent: bytes, size: int = 1000, limit: int = 10**6) -> bytes:
    """What comes of `sent` in pieces of `size` bytes."""
    body = Body(coding, limit)
    for start in range(0, len(sent), size):
        body.take(sent[start : start + size])
    return body.whole()


@given(st.sampled_from(list(PACKERS)), st.binary(max_size=3000), st.integers(1, 3000))
def test_any_content_in_any_pieces(coding: str, content: bytes, size: int) -> None:
    assert received(coding, PACKERS[coding](content), size) == content


@pytest.mark.parametrize("coding", PACKERS)
def test_no_body_at_all(coding: str) -> None:
    """As with a 204, or the answer to a HEAD, which may name a coding all the same."""
    assert received(coding, b"") == b""


@given(st.lists(st.binary(max_size=50), min_size=1, max_size=4), st.integers(1, 200))
def test_gzip_in_several_members(parts: list[bytes], size: int) -> None:
    assert received("gzip", b"".join(map(gzip.compress, parts)), size) == b"".join(parts)


@pytest.mark.parametrize("coding", [coding for coding, pack in PACKERS.items() if pack is not bytes])
@given(content=st.binary(min_size=1, max_size=300), data=st.data())
def test_a_coding_that_is_cut(coding: str, content: bytes, data: st.DataObject) -> None:
    sent = PACKERS[coding](content)
    with pytest.raises(Miscoded, match=r"as its Content-Encoding says|ends in the middle"):
        received(coding, sent[: data.draw(st.integers(1, len(sent) - 1))])


@pytest.mark.parametrize("extra", [b"!", b"{}", b"\0" * 20, b"\x1f", b"\x1f!", b"[1]" * 100])
@pytest.mark.parametrize("size", [1, 7, 1000])
@pytest.mark.parametrize("coding", [coding for coding, pack in PACKERS.items() if pack is not bytes])
def test_a_body_that_goes_on_after_its_end(coding: str, size: int, extra: bytes) -> None:
    with pytest.raises(Miscoded, match=r"goes on after the end of its (x-gzip|gzip|deflate) coding"):
        received(coding, PACKERS[coding](b"[]") + extra, size)


@pytest.mark.parametrize("coding", ["deflate", "Deflate"])
def test_deflate_has_no_members(coding: str) -> None:
    with pytest.raises(Miscoded, match="goes on after the end"):
        received(coding, PACKERS[coding](b"[]") + gzip.compress(b"[]"))


@pytest.mark.parametrize("sent", [b"[]", b"[", b'[{"id": 101}]', b"\x1f\x8b\x08" + b"\xff" * 40, b"\0" * 50])
@pytest.mark.parametrize("coding", ["gzip", "deflate"])
def test_a_body_that_is_not_what_it_says(coding: str, sent: bytes) -> None:
    with pytest.raises(Miscoded, match=coding):
        received(coding, sent)


@pytest.mark.parametrize(
    "coding", ["br", "zstd", "br, gzip", "gzip, gzip, gzip", "gzip," * 5000, "compress", "amz-1.0", "none", "\xe9"]
)
def test_a_coding_that_was_not_asked_for(coding: str) -> None:
    body = Body(coding, 100)
    assert body.whole() == b"", "there may be none"
    body.take(b"")
    with pytest.raises(Unreadable, match="requests ask for gzip or deflate"):
        body.take(b"x")


@pytest.mark.parametrize("coding", ["utf-8", "UTF8", "gzip, utf-8", "iso-8859-1"])
def test_a_charset_is_no_coding(coding: str) -> None:
    body = Body(coding, 100)
    assert body.whole() == b"", "there may be none"
    with pytest.raises(Miscoded, match="names a charset"):
        body.take(b"x")


@given(st.sampled_from(list(PACKERS)), st.integers(1, 500), st.integers(1, 500))
def test_the_limit_is_exact(coding: str, size: int, limit: int) -> None:
    sent = PACKERS[coding](b"x" * size)
    if size <= limit and len(sent) <= limit:
        assert received(coding, sent, limit=limit) == b"x" * size
    else:
        when = "as received" if len(sent) > limit else "once decompressed"
        with pytest.raises(Unreadable, match=rf"{when} is larger than .* MB \(--max-body\)"):
            received(coding, sent, size=10**6, limit=limit)


@pytest.mark.parametrize("value", [b"[],", b"{},", b"[[[[[["])
def test_a_body_of_very_many_values(value: bytes) -> None:
    """What it takes in memory, once read, is many times its size."""
    sent = value * (1000 // len(value))
    assert received("", sent, limit=8 * len(sent)) == sent
    with pytest.raises(Unreadable, match="holds more than 125 JSON values"):
        received("", sent, limit=1000)


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
def test_a_bomb_goes_off_nowhere(coding: str) -> None:
    """100 MB in 100 kB, received at once: no more is decompressed than may be."""
    bomb = PACKERS[coding](b"\0" * 100_000_000)
    tracemalloc.start()
    with pytest.raises(Unreadable, match="once decompressed is larger than 1 MB"):
        received(coding, bomb, size=len(bomb))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4_000_000
