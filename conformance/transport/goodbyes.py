"""HTTP/2 where a service says that the request at hand is the last on its connection, and answers it all the same.

GOAWAY without an error may come before the answer (RFC 9113 section 6.8), as from nginx without keep-alive. h2 takes it
for the end of the connection, and has no setting for it; with a connection for each request there is nothing to heed.
"""

from __future__ import annotations

#: The head of a frame (RFC 9113 section 4.1): bytes of its length, and of all; the type of GOAWAY, and the longest one
#: that is looked at.
_LENGTH, _HEAD, _GOAWAY, _LONGEST = 3, 9, 7, 16_384


class Goodbyes:
    """What comes on one connection, piece by piece, without the goodbyes in it."""

    def __init__(self) -> None:
        self._left = 0  # bytes of the frame at hand that are still to come
        self._held = b""  # the beginning of one that may be a goodbye

    def taken_out(self, came: bytes) -> bytes:
        """What of the bytes that `came`, and of those held back before, is to be read now: maybe nothing so far."""
        passed, rest = came[: self._left], self._held + came[self._left :]
        self._left -= len(passed)
        while len(rest) >= _HEAD:
            end = _HEAD + int.from_bytes(rest[:_LENGTH], "big")
            if rest[_LENGTH] == _GOAWAY and end <= _LONGEST:
                if len(rest) < end:
                    break
                passed += b"" if _is_goodbye(rest[_HEAD:end]) else rest[:end]
            else:
                passed += rest[:end]
                self._left = max(0, end - len(rest))
            rest = rest[end:]
        self._held = rest
        return passed


def _is_goodbye(payload: bytes) -> bool:
    """Whether a GOAWAY says that there is no error, and that some request is still answered."""
    last_stream = int.from_bytes(payload[:4], "big") & 0x7FFF_FFFF
    return last_stream > 0 and int.from_bytes(payload[4:8], "big") == 0 and len(payload) >= 8
