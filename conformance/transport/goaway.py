"""A filter that removes graceful GOAWAY frames from HTTP/2.

A service may announce that the request at hand is the last on its connection, and still answer it: nginx without
keep-alive does so, by a GOAWAY without an error before the answer (RFC 9113 section 6.8). h2 takes that frame for the
end of the connection, and has no setting to change this. Each request has a connection of its own here, so the frame
can be ignored. Pure.
"""

from __future__ import annotations

#: The head of a frame (RFC 9113 section 4.1): bytes of its length field, and of the whole head. The type of GOAWAY, and
#: the longest frame of that type that is examined.
_LENGTH, _HEAD, _GOAWAY, _LONGEST = 3, 9, 7, 16_384


class GoAwayFilter:
    """Filters what one connection receives, piece by piece."""

    def __init__(self) -> None:
        self._left = 0  # bytes still to come of the current frame, which passes
        self._held = b""  # the beginning of a frame that may have to be removed

    def filtered(self, received: bytes) -> bytes:
        """What to read now of the bytes just `received` and of those held back before; may be nothing yet."""
        passed, rest = received[: self._left], self._held + received[self._left :]
        self._left -= len(passed)
        while len(rest) >= _HEAD:
            end = _HEAD + int.from_bytes(rest[:_LENGTH], "big")
            if rest[_LENGTH] == _GOAWAY and end <= _LONGEST:
                if len(rest) < end:
                    break
                passed += b"" if _is_graceful(rest[_HEAD:end]) else rest[:end]
            else:
                passed += rest[:end]
                self._left = max(0, end - len(rest))
            rest = rest[end:]
        self._held = rest
        return passed


def _is_graceful(payload: bytes) -> bool:
    """Whether a GOAWAY reports no error, and some request is still answered."""
    last_stream = int.from_bytes(payload[:4], "big") & 0x7FFF_FFFF
    return last_stream > 0 and int.from_bytes(payload[4:8], "big") == 0 and len(payload) >= 8
