"""HTTP/2 frames without graceful GOAWAYs, in whatever pieces they arrive."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from conformance.transport.goaway import GoAwayFilter


def frame(kind: int, payload: bytes) -> bytes:
    """RFC 9113 section 4.1, on stream 1."""
    return len(payload).to_bytes(3, "big") + bytes([kind, 0]) + (1).to_bytes(4, "big") + payload


GRACEFUL = frame(7, bytes([0, 0, 0, 1, 0, 0, 0, 0]) + b"so long")
#: Other frames, and GOAWAYs that are not graceful: an error, no request processed, too short.
OTHERS = st.one_of(
    st.builds(frame, st.sampled_from([0, 1, 3, 4, 6, 8, 9]), st.binary(max_size=40)),
    st.sampled_from([frame(7, bytes([0, 0, 0, 1, 0, 0, 0, 2])), frame(7, bytes(8)), frame(7, b"\x01")]),
)


@given(st.lists(st.one_of(OTHERS, st.just(GRACEFUL)), max_size=8), st.data())
def test_all_but_graceful_goaways_is_read(frames: list[bytes], data: st.DataObject) -> None:
    came, connection, read = b"".join(frames), GoAwayFilter(), b""
    while came:
        size = data.draw(st.integers(1, len(came)))
        read += connection.filtered(came[:size])
        came = came[size:]
    assert read == b"".join(each for each in frames if each != GRACEFUL)


@given(st.binary(max_size=60))
def test_what_is_no_frame_is_read_as_it_is(text: bytes) -> None:
    """HTTP/1.1, say, whose first nine bytes would announce a long frame."""
    came = b"HTTP/1.1 200 OK" + text
    assert GoAwayFilter().filtered(came) == came
