"""What went wrong on a connection, in plain words instead of the terms of h11, httpcore, h2 and OpenSSL."""

from __future__ import annotations

import re

#: The most bytes of a head that httpcore accepts, and the message for a longer one.
LONGEST_HEAD = 100 * 1024
LONG_HEAD = f"the head of the answer, or of a chunk of it, is longer than {LONGEST_HEAD} bytes"
#: What httpcore says where a connection ended before an answer.
UNHEARD = "Server disconnected without sending a response"
#: The service demands a client certificate. In TLS 1.3 it says so after the handshake, in place of its first answer
#: (RFC 8446 sections 4.4.2.4 and 6.2).
NO_CERTIFICATE = "the service asks for a certificate of the client, or for another one than it was shown (client_cert)"
#: Patterns of what the libraries say, and the same in plain words.
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
        # h11 takes up to 20 digits, and does not say what was wrong: any number of leading zeros is legal.
        ("bad Content-Length", "Content-Length is no number of up to 20 digits"),
        ("conflicting Content-Length headers", "there are several fields Content-Length, which differ"),
        ("multiple Transfer-Encoding headers", "there are several fields Transfer-Encoding"),
        ("illegal chunk header: (.*)", r"the size of a chunk of the body is malformed, or longer than 20 digits: \1"),
        (r"malformed chunk footer: (.*) \(expected .*\)", r"a chunk of the body does not end where its size says: \1"),
    )
)


def in_plain_words(error: BaseException) -> str:
    """What `error` says, in plain words; in its own words where it is not one of the usual errors."""
    for pattern, plain in _PLAIN_WORDS:
        if found := pattern.fullmatch(str(error)):
            return re.sub(r"""(?:bytearray\()?\bb('.*'|".*")\)?""", r"\1", found.expand(plain))
    return str(error)
