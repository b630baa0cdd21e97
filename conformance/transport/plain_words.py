"""What is wrong with an answer, without the terms of the libraries that say so."""

from __future__ import annotations

import re

#: Bytes of a head that httpcore takes in, and what is said of a longer one.
LONGEST_HEAD = 100 * 1024
LONG_HEAD = f"the head of the answer, or of a chunk of it, is longer than {LONGEST_HEAD} bytes"
#: What httpcore says of a connection that ended before an answer.
UNHEARD = "Server disconnected without sending a response"
#: That there is no connection without a certificate of the client. In TLS 1.3 a service says so after the handshake, in
#: the place of its first answer (RFC 8446 sections 4.4.2.4 and 6.2).
NO_CERTIFICATE = "the service asks for a certificate of the client, or for another one than it was shown (client_cert)"
#: What h11, httpcore and sockets say of answers that are none, and the same without their terms.
_PLAIN_WORDS = tuple(
    (re.compile(pattern), plain)
    for pattern, plain in (
        ("Receive buffer too long", LONG_HEAD),
        (
            f"(?:{UNHEARD}|can't handle event type ConnectionClosed |peer unexpectedly closed connection).*",
            "the connection was closed before the head of an answer was complete",
        ),
        (
            r"peer closed connection .* \(received (\d+) bytes, expected (\d+)\)",
            r"the connection was closed after \1 of the \2 bytes that Content-Length announces",
        ),
        (
            r"peer closed connection .* \(incomplete chunked read\)",
            "the connection was closed before the last chunk of the body",
        ),
        (
            ".*_ALERT_(?:(?:BAD|UNSUPPORTED)_CERTIFICATE|CERTIFICATE_[A-Z]+|UNKNOWN_CA|ACCESS_DENIED).*",
            NO_CERTIFICATE,
        ),
        (r"\[SSL: CERTIFICATE_VERIFY_FAILED\] (certificate verify failed: .*?)\.? \(_ssl\.c:\d+\)", r"\1"),
        (r"\[SSL: WRONG_VERSION_NUMBER\].*", "what answers there speaks no TLS: is it http://?"),
        (r"\[Errno \d+\] Connection reset by peer", "the connection was reset"),
        (r"\[Errno \d+\] Broken pipe", "the connection was closed before the request was sent"),
        ("illegal status line: (.*)", r"the answer begins with no status line of HTTP: \1"),
        ("no response line received", "the answer begins with no status line of HTTP"),
        ("illegal header line: (.*)", r"a header line is malformed: \1"),
        ("continuation line at start of headers", "the first header line begins with a blank"),
        ("Illegal header (name|value) (.*)", r"the \1 of a header field is malformed: \2"),
        # h11 reads no longer ones, and does not say which it was: leading zeros are legal, however many.
        ("bad Content-Length", "Content-Length is no number of up to 20 digits"),
        ("conflicting Content-Length headers", "there are several fields Content-Length, which differ"),
        ("multiple Transfer-Encoding headers", "there are several fields Transfer-Encoding"),
        ("illegal chunk header: (.*)", r"the size of a chunk of the body is malformed, or longer than 20 digits: \1"),
        (r"malformed chunk footer: (.*) \(expected .*\)", r"a chunk of the body does not end where its size says: \1"),
    )
)


def in_plain_words(error: BaseException) -> str:
    """What is wrong with an answer, without the terms of the library that says so; as it says it, where that is
    seldom."""
    for pattern, plain in _PLAIN_WORDS:
        if found := pattern.fullmatch(str(error)):
            return re.sub(r"""(?:bytearray\()?\bb('.*'|".*")\)?""", r"\1", found.expand(plain))
    return str(error)
