"""The body of an answer as it arrives: its content coding is undone piece by piece, and no further than a limit.

The limit applies twice, to what is received and to what it decompresses to: a few kilobytes can become a gigabyte.
"""

from __future__ import annotations

import zlib

from conformance.target import MEGABYTE

#: Content codings that are undone, with the window bits by which zlib knows them; x-gzip is another name of gzip (RFC
#: 9110 section 8.4.1.3). "deflate" is the zlib format; bare deflate is common under that name, too.
CODINGS = {"gzip": 31, "x-gzip": 31, "deflate": 15}
BARE_DEFLATE = -15
#: What is no content coding, though some take it for one. Any other name may be that of one (section 8.4.1).
CHARSETS = frozenset({"utf-8", "utf8", "us-ascii", "iso-8859-1"})
#: Members of a list of codings that mean no coding (section 5.6.1.2; section 12.5.3).
NO_CODINGS = ("", "identity")
#: How many codings of one body are undone: a service may apply both that are asked for (section 8.4).
MOST_CODINGS = 2
GZIP_MAGIC = b"\x1f\x8b"
#: Bytes of the limit per JSON value of a body: "[{},{}," takes ten times the memory of the same bytes as orders.
BYTES_PER_VALUE = 8


class Unreadable(Exception):
    """A body that the suite does not accept: larger than the limit, or in a coding that was not asked for."""


class Miscoded(Exception):
    """A body that does not match its Content-Encoding."""


class Body:
    """A body that is being received; `limit` is in bytes."""

    def __init__(self, coding: str, limit: int) -> None:
        """`coding` is the value of Content-Encoding, empty where there is none."""
        applied = [name for part in coding.split(",") if (name := part.strip().lower()) not in NO_CODINGS]
        self._unreadable: Exception | None = None
        if not CHARSETS.isdisjoint(applied):
            self._unreadable = Miscoded(f"the body has Content-Encoding {coding!r}, which names a charset")
            applied.clear()
        elif len(applied) > MOST_CODINGS or not CODINGS.keys() >= set(applied):
            self._unreadable = Unreadable(f"the body has Content-Encoding {coding!r}; requests ask for gzip or deflate")
            applied.clear()
        self._coding = applied.pop() if applied else ""  # the last one was applied last
        self._inner = Body(", ".join(applied), limit) if applied else None
        self._limit = limit
        self._received = 0
        self._content = bytearray()
        self._head = b""  # of a compressed body, until there is enough to tell its format
        self._inflate: zlib._Decompress | None = None

    def take(self, piece: bytes) -> None:
        """Add what was received. Raises Unreadable and Miscoded."""
        if self._unreadable and piece:  # the field without a body, as with a 204, does no harm
            raise self._unreadable
        self._received += len(piece)
        self._check(self._received, "as received")
        if not self._coding:
            self._content += piece
            return
        if self._inflate is None:
            self._head += piece
            if len(self._head) < 2:
                return
            piece, self._head = self._head, b""
            self._inflate = zlib.decompressobj(self._window(piece))
        try:
            self._decompress(piece)
        except zlib.error as error:
            raise Miscoded(f"the body is not {self._coding}, as its Content-Encoding says: {error}") from None

    def whole(self) -> bytes:
        """The whole body, once its end was received. Raises Unreadable and Miscoded."""
        if self._head or (self._inflate is not None and not self._inflate.eof):
            raise Miscoded(f"the body ends in the middle of its {self._coding} coding")
        if self._inflate is not None and self._inflate.unused_data:
            raise self._goes_on()
        if self._inner is not None:
            self._inner.take(bytes(self._content))
            return self._inner.whole()
        if len(self._content) > (most := self._limit // BYTES_PER_VALUE):
            values = sum(self._content.count(mark) for mark in (b"{", b"[", b","))
            if values > most:
                raise Unreadable(
                    f"the body holds more than {most} JSON values ({BYTES_PER_VALUE} bytes of --max-body each)"
                )
        return bytes(self._content)

    def _decompress(self, piece: bytes) -> None:
        while piece and self._inflate is not None:
            # One byte more than may be is enough to know that it is too much.
            self._content += self._inflate.decompress(piece, self._limit - len(self._content) + 1)
            self._check(len(self._content), "once decompressed")
            piece = self._inflate.unconsumed_tail
            after = self._inflate.unused_data
            if after.startswith(GZIP_MAGIC) and self._coding != "deflate":  # RFC 1952 section 2.2: members
                piece = after
                self._inflate = zlib.decompressobj(CODINGS["gzip"])
            elif not GZIP_MAGIC.startswith(after):  # which may be there in part
                raise self._goes_on()

    def _goes_on(self) -> Miscoded:
        return Miscoded(f"the body goes on after the end of its {self._coding} coding")

    def _window(self, start: bytes) -> int:
        zlib_header = start[0] & 0x0F == 8 and int.from_bytes(start[:2]) % 31 == 0  # RFC 1950 section 2.2
        return BARE_DEFLATE if self._coding == "deflate" and not zlib_header else CODINGS[self._coding]

    def _check(self, size: int, when: str) -> None:
        if size > self._limit:
            raise Unreadable(f"the body {when} is larger than {self._limit / MEGABYTE:g} MB (--max-body)")
