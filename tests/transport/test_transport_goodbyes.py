"""HTTP/2 frames without goodbyes, however they come in pieces."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from conformance.transport.goodbyes import Goodbyes


def frame(kind: int, payload: bytes) -> bytes:
    """RFC 9113 section 4.1, on stream 1."""
    return len(payload).to_bytes(3, "big") + bytes([kind, 0]) + (1).to_bytes(4, "big") + payload


GOODBYE = frame(7, bytes([0, 0, 0, 1, 0, 0, 0, 0]) + b"so long")
#: Other frames, and what is no goodbye: an error, a request that was not looked at, one that is too short.
OTHERS = st.one_of(
    st.builds(frame, st.sampled_from([0, 1, 3, 4, 6, 8, 9]), st.binary(max_size=40)),
    st.sampled_from([frame(7, bytes([0, 0, 0, 1, 0, 0, 0, 2])), frame(7, bytes(8)), frame(7, b"\x01")]),
)


@given(st.lists(st.one_of(OTHERS, st.just(GOODBYE)), max_size=8), st.data())
def test_all_but_goodbyes_is_read(frames: list[bytes], data: st.DataObject) -> None:
    came, goodbyes, read = b"".join(frames), Goodbyes(), b""
    while came:
        size = data.draw(st.integers(1, len(came)))
        read += goodbyes.taken_out(came[:size])
        came = came[size:]
    assert read == b"".join(each for each in frames if each != GOODBYE)


@given(st.binary(max_size=60))
def test_what_is_no_frame_is_read_as_it_is(text: bytes) -> None:
    """As where HTTP/1.1 comes all the same: its first nine bytes announce a long frame."""
    came = b"HTTP/1.1 200 OK" + text
    assert Goodbyes().taken_out(came) == came
