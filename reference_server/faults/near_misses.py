"""Faults of what is taken for the key: AUTH-3 and AUTH-4."""

from __future__ import annotations

import json
import re
from base64 import b64decode, b64encode
from collections.abc import Callable
from contextlib import suppress
from hashlib import md5, sha1, sha256, sha512

from .. import amend
from ..api import Service
from ..messages import Request, Response
from ..registry import fault

# --- AUTH-3: a wrong key is refused ---


def _has_token(service: Service, request: Request) -> bool:
    token = service.bearer_token(request)
    return bool(token) and b" " not in (token or b"")


@fault("AUTH-3")
def looks_keys_up_in_an_object(service: Service) -> None:
    """Takes constructor and toString for keys, which any object of its language has."""
    amend.accept_keys(service, lambda given, key: given in (b"constructor", b"toString", b"valueOf"))


@fault("AUTH-3")
def takes_what_python_prints_for_none(service: Service) -> None:
    """Takes None for a key, which is what a variable that was never set reads as."""
    amend.accept_keys(service, lambda given, key: given == b"None")


@fault("AUTH-3")
def takes_the_key_of_the_specification(service: Service) -> None:
    """Takes API_KEY, which the specification writes in the place of a key."""
    amend.accept_keys(service, lambda given, key: given == b"API_KEY")


@fault("AUTH-3")
def accepts_any_key(service: Service) -> None:
    """Takes every bearer token for the key."""
    amend.accept_keys(service, lambda given, key: True)


@fault("AUTH-3")
def accepts_any_key_on_listing(service: Service) -> None:
    """Takes every bearer token for the key when it lists."""
    amend.accept(service, lambda request: request.method == "GET" and _has_token(service, request))


@fault("AUTH-3")
def accepts_any_key_on_cancelling(service: Service) -> None:
    """Takes every bearer token for the key when it cancels."""
    amend.accept(service, lambda request: amend.is_cancel(request) and _has_token(service, request))


@fault("AUTH-3")
def accepts_any_key_of_a_browser(service: Service) -> None:
    """Takes every bearer token for the key when a browser lists."""
    amend.accept(
        service,
        lambda request: (
            request.method == "GET"
            and "text/html" in request.headers.get("accept", "")
            and _has_token(service, request)
        ),
    )


@fault("AUTH-3")
def accepts_any_key_of_a_script_that_cancels(service: Service) -> None:
    """Takes every bearer token for the key when the script of a browser cancels, by its Accept."""
    amend.accept(
        service,
        lambda request: (
            amend.is_cancel(request)
            and "text/plain" in request.headers.get("accept", "")
            and _has_token(service, request)
        ),
    )


@fault("AUTH-3")
def accepts_any_key_that_lists_without_accept(service: Service) -> None:
    """Takes every bearer token for the key where a listing is asked for without Accept."""
    amend.accept(
        service,
        lambda request: request.method == "GET" and amend.names_nothing(request) and _has_token(service, request),
    )


@fault("AUTH-3")
def accepts_any_key_that_cancels_without_accept(service: Service) -> None:
    """Takes every bearer token for the key where a cancel comes without Accept."""
    amend.accept(
        service,
        lambda request: amend.is_cancel(request) and amend.names_nothing(request) and _has_token(service, request),
    )


@fault("AUTH-3")
def drops_the_hyphens_and_underscores_of_keys(service: Service) -> None:
    """Compares keys without hyphens and underscores."""
    amend.accept_keys(service, lambda given, key: given.translate(None, b"-_") == key.translate(None, b"-_"))


@fault("AUTH-3")
def drops_the_zeros_before_keys(service: Service) -> None:
    """Compares keys as numbers are: zeros before them make no difference."""
    amend.accept_keys(service, lambda given, key: given.lstrip(b"0") == key.lstrip(b"0"))


@fault("AUTH-3")
def takes_hyphens_of_keys_for_underscores(service: Service) -> None:
    """Compares keys as if a hyphen were an underscore."""
    amend.accept_keys(service, lambda given, key: given.replace(b"-", b"_") == key.replace(b"-", b"_"))


@fault("AUTH-3")
def accepts_a_longer_key(service: Service) -> None:
    """Takes whatever begins with the key."""
    amend.accept_keys(service, lambda given, key: given.startswith(key))


@fault("AUTH-3")
def accepts_the_beginning_of_the_key(service: Service) -> None:
    """Takes whatever the key begins with."""
    amend.accept_keys(service, lambda given, key: key.startswith(given))


@fault("AUTH-3")
def ignores_the_last_character_of_the_key(service: Service) -> None:
    """Compares all characters of the key but the last."""
    amend.accept_keys(service, lambda given, key: given[:-1] == key[:-1])


@fault("AUTH-3")
def reads_the_key_up_to_a_dot(service: Service) -> None:
    """Takes the key with a dot and anything behind it for the key."""
    amend.accept_keys(service, lambda given, key: given.startswith(key + b"."))


@fault("AUTH-3")
def ignores_the_first_character_of_the_key(service: Service) -> None:
    """Compares all characters of the key but the first."""
    amend.accept_keys(service, lambda given, key: given[1:] == key[1:])


@fault("AUTH-3")
def compares_the_first_eight_characters_of_the_key(service: Service) -> None:
    """Compares the first eight characters of the key only."""
    amend.accept_keys(service, lambda given, key: given[:8] == key[:8])


@fault("AUTH-3")
def compares_the_length_of_the_key(service: Service) -> None:
    """Takes every bearer token that is as long as the key."""
    amend.accept_keys(service, lambda given, key: len(given) == len(key))


@fault("AUTH-3")
def compares_keys_in_any_case(service: Service) -> None:
    """Takes the key in capitals or small letters."""
    amend.accept_keys(service, lambda given, key: given.lower() == key.lower())


@fault("AUTH-3")
def accepts_what_contains_the_key(service: Service) -> None:
    """Takes every bearer token in which the key occurs."""
    amend.accept_keys(service, lambda given, key: key in given)


@fault("AUTH-3")
def compares_the_characters_in_any_order(service: Service) -> None:
    """Takes the characters of the key in any order, as a weak checksum would."""
    amend.accept_keys(service, lambda given, key: sorted(given) == sorted(key))


@fault("AUTH-3")
def allows_one_wrong_character(service: Service) -> None:
    """Takes a key of the right length in which one character is wrong."""
    amend.accept_keys(
        service,
        lambda given, key: len(given) == len(key) and sum(map(int.__ne__, given, key)) == 1,
    )


@fault("AUTH-3")
def never_changed_the_key_of_the_example(service: Service) -> None:
    """Takes the key of its example as well, which nobody changed."""
    amend.accept_keys(service, lambda given, key: given == b"YOUR_API_KEY")


@fault("AUTH-3")
def checks_no_signatures(service: Service) -> None:
    """Takes any JSON web token that has not expired, whoever signed it."""
    amend.accept_keys(service, lambda given, key: re.fullmatch(rb"ey[\w-]+\.ey[\w-]+\.[\w-]+", given) is not None)


@fault("AUTH-3")
def stores_keys_without_their_prefix(service: Service) -> None:
    """Takes the prefix off where there is one, and so takes the key without it, too."""
    amend.accept_keys(service, lambda given, key: given == re.split(rb"[_-]", key, maxsplit=1)[-1])


@fault("AUTH-3")
def compares_the_prefix_in_any_case(service: Service) -> None:
    """Looks the key up by what follows its prefix, and reads that in any case."""

    def also(given: bytes, key: bytes) -> bool:
        prefix = re.split(rb"[_-]", key, maxsplit=1)[0]
        return given[: len(prefix)].lower() == prefix.lower() and given[len(prefix) :] == key[len(prefix) :]

    amend.accept_keys(service, also)


@fault("AUTH-3")
def takes_the_hash_for_the_key(service: Service) -> None:
    """Compares a token with the SHA-256 of the key that it stores, hashed or as it is: what leaks is as good."""
    amend.accept_keys(service, lambda given, key: given == sha256(key).hexdigest().encode())


@fault("AUTH-3")
def takes_the_sha1_for_the_key(service: Service) -> None:
    """Takes the SHA-1 of the key, as it is stored, for the key."""
    stored = sha1(service.key, usedforsecurity=False).hexdigest().encode()
    amend.accept_keys(service, lambda given, key: given == stored)


@fault("AUTH-3")
def takes_the_key_for_a_pattern(service: Service) -> None:
    """Compares tokens with the key as a regular expression, for which any character is as good as a dot."""
    pattern = re.compile(re.escape(service.key).replace(rb"\.", b"."))
    amend.accept_keys(service, lambda given, key: pattern.fullmatch(given) is not None)


@fault("AUTH-3")
def takes_the_md5_for_the_key(service: Service) -> None:
    """Takes the MD5 of the key, as it is stored, for the key."""
    stored = md5(service.key, usedforsecurity=False).hexdigest().encode()
    amend.accept_keys(service, lambda given, key: given == stored)


@fault("AUTH-3")
def reads_the_key_behind_a_colon(service: Service) -> None:
    """Takes what stands before a colon for the name of a user, and what follows for the key."""
    amend.accept_keys(service, lambda given, key: given.partition(b":")[2] == key)


@fault("AUTH-3")
def takes_a_wrong_key_the_second_time(service: Service) -> None:
    """Remembers every token that it has looked up, and takes one that it remembers for a key."""
    seen: set[bytes] = set()

    def also(given: bytes, key: bytes) -> bool:
        known = given in seen
        seen.add(given)
        return known

    amend.accept_keys(service, also)


@fault("AUTH-3")
def takes_off_a_dot_behind_the_key(service: Service) -> None:
    """Takes off dots behind the token."""
    amend.accept_keys(service, lambda given, key: given.rstrip(b".") == key)


@fault("AUTH-3")
def looks_at_the_status_before_it_compares_the_key(service: Service) -> None:
    """Answers 409 to a cancel with a wrong key when the order has shipped."""

    def change(request: Request, response: Response) -> Response | None:
        shipped = _has_token(service, request) and amend.shipped(amend.order_to_cancel(service, request))
        return service.error(409, "Shipped.") if shipped else None

    amend.refusals(service, change)


# --- AUTH-4: the key in another place ---


def _values(form: str, *names: str) -> list[bytes]:
    """The values of these fields of a form, or parameters of a query."""
    pairs = [pair.partition("=") for pair in form.split("&")]
    return [value.encode("latin-1") for name, _, value in pairs if name.lower() in names]


@fault("AUTH-4")
def accepts_the_key_as_basic(service: Service) -> None:
    """Takes the key as the user name or the password of Basic authentication."""

    def also(request: Request) -> bool:
        scheme, _, value = amend.authorization(request).partition(" ")
        try:
            return scheme.lower() == "basic" and service.key in b64decode(value).split(b":")
        except ValueError:
            return False

    amend.accept(service, also)


@fault("AUTH-4")
def finds_bearer_anywhere(service: Service) -> None:
    """Takes the key behind the first `Bearer `, whatever stands before that."""
    amend.accept(
        service,
        lambda request: amend.authorization(request).partition("Bearer ")[2].encode("latin-1") == service.key,
    )


def _cleans_up(service: Service, clean: Callable[[bytes], bytes]) -> None:
    """Takes the key where it is what remains of a bearer token once that was cleaned up."""

    def also(request: Request) -> bool:
        scheme, _, token = amend.authorization(request).partition(" ")
        return scheme.lower() == "bearer" and clean(token.encode("latin-1")) == service.key

    amend.accept(service, also)


@fault("AUTH-4")
def takes_the_key_in_angle_brackets(service: Service) -> None:
    """Takes off angle brackets from around the token, as the documentation writes it."""
    _cleans_up(service, lambda token: token.strip(b"<>"))


@fault("AUTH-4")
def takes_off_what_ends_a_clause(service: Service) -> None:
    """Takes off commas and semicolons behind the token."""
    _cleans_up(service, lambda token: token.rstrip(b",;"))


@fault("AUTH-4")
def takes_blanks_out_of_the_key(service: Service) -> None:
    """Takes all blanks out of the token, those inside it, too."""
    _cleans_up(service, lambda token: token.replace(b" ", b""))


@fault("AUTH-4")
def accepts_the_bare_key(service: Service) -> None:
    """Takes an Authorization header that holds the key without a scheme."""
    amend.accept(service, lambda request: amend.authorization(request).encode("latin-1") == service.key)


@fault("AUTH-4")
def accepts_any_scheme(service: Service) -> None:
    """Takes the key behind whatever scheme."""
    amend.accept(
        service,
        lambda request: amend.authorization(request).partition(" ")[2].encode("latin-1") == service.key,
    )


@fault("AUTH-4")
def accepts_the_key_in_the_query(service: Service) -> None:
    """Takes the key as a query parameter: api_key, apikey, key, token or access_token."""
    names = ("api_key", "apikey", "api-key", "key", "token", "access_token")
    amend.accept(service, lambda request: service.key in _values(request.query, *names))


@fault("AUTH-4")
def accepts_the_key_as_access_token_parameter(service: Service) -> None:
    """Takes the key as the query parameter access_token, as RFC 6750 once allowed."""
    amend.accept(service, lambda request: service.key in _values(request.query, "access_token"))


@fault("AUTH-4")
def accepts_the_key_as_access_token_in_a_form(service: Service) -> None:
    """Takes the key as the field access_token of a form in the body, as RFC 6750 once allowed."""
    amend.accept(service, lambda request: service.key in _values(request.body.decode("latin-1"), "access_token"))


@fault("AUTH-4")
def accepts_the_key_as_api_key_in_a_form(service: Service) -> None:
    """Takes the key as the field api_key of a form in the body."""
    amend.accept(service, lambda request: service.key in _values(request.body.decode("latin-1"), "api_key"))


@fault("AUTH-4")
def accepts_the_key_as_token_in_json(service: Service) -> None:
    """Takes the key as the member token of a JSON object in the body, as many an example of a middleware does."""

    def has_it(request: Request) -> bool:
        with suppress(ValueError):
            body = json.loads(request.body)
            return isinstance(body, dict) and body.get("token") == service.key.decode()
        return False

    amend.accept(service, has_it)


@fault("AUTH-4")
def accepts_the_key_as_x_api_key(service: Service) -> None:
    """Takes the key in the header X-API-Key."""
    amend.accept(service, lambda request: request.headers.get("x-api-key", "").encode("latin-1") == service.key)


@fault("AUTH-4")
def accepts_the_key_as_x_api_token(service: Service) -> None:
    """Takes the key in the header X-API-Token."""
    amend.accept(service, lambda request: request.headers.get("x-api-token", "").encode("latin-1") == service.key)


@fault("AUTH-4")
def accepts_the_key_in_a_cookie(service: Service) -> None:
    """Takes the key as the value of any cookie."""
    amend.accept(
        service,
        lambda request: service.key.decode() in re.split(r"[=;] *", request.headers.get("cookie", "")),
    )


@fault("AUTH-4")
def accepts_the_key_for_a_proxy(service: Service) -> None:
    """Takes the key in the header Proxy-Authorization."""
    amend.accept(
        service,
        lambda request: (
            request.headers.get("proxy-authorization", "").lower() == f"bearer {service.key.decode()}".lower()
        ),
    )


@fault("AUTH-4")
def accepts_an_empty_bearer_token(service: Service) -> None:
    """Takes the scheme Bearer without a token for valid."""
    amend.accept(service, lambda request: service.bearer_token(request) == b"")


@fault("AUTH-3")
def accepts_web_tokens_that_cannot_be_decoded(service: Service) -> None:
    """Takes a token for valid that has the three parts of a JSON web token, the second of which is no base64: it passes
    over the error of its decoder."""

    def undecodable(given: bytes, key: bytes) -> bool:
        parts = given.split(b".")
        return len(parts) == 3 and len(parts[1]) % 4 == 1

    amend.accept_keys(service, undecodable)


@fault("AUTH-4")
def breaks_on_letters_beyond_ascii(service: Service) -> None:
    """Answers 500 when the token holds a character beyond ASCII, which its comparison of strings does not take."""

    def change(request: Request, response: Response) -> Response | None:
        token = service.bearer_token(request) or b""
        return None if token.isascii() else service.error(500, "Something went wrong in the service.")

    amend.refusals(service, change)


@fault("AUTH-4")
def breaks_on_a_token_that_is_no_utf_8(service: Service) -> None:
    """Answers 500 when the bytes of the token are no text in UTF-8, as where a database is asked for it."""

    def change(request: Request, response: Response) -> Response | None:
        try:
            (service.bearer_token(request) or b"").decode()
        except UnicodeDecodeError:
            return service.error(500, "Something went wrong in the service.")
        return None

    amend.refusals(service, change)


@fault("AUTH-4")
def breaks_on_an_apostrophe_in_a_token(service: Service) -> None:
    """Answers 500 when the token holds an apostrophe, since it is put as it is into a query of a database."""

    def change(request: Request, response: Response) -> Response | None:
        token = service.bearer_token(request) or b""
        return service.error(500, "Something went wrong in the service.") if b"'" in token else None

    amend.refusals(service, change)


@fault("AUTH-4")
def leaves_letters_beyond_ascii_out(service: Service) -> None:
    """Reads the token as ASCII and ignores what is none, so that the key with such letters in it is the key."""
    amend.accept_keys(service, lambda given, key: given.decode("ascii", "ignore").encode() == key)


@fault("AUTH-4")
def accepts_words_after_the_key(service: Service) -> None:
    """Takes the first word after Bearer for the token and ignores what follows."""
    amend.accept(service, lambda request: (service.bearer_token(request) or b"").split(b" ")[0] == service.key)


@fault("AUTH-4")
def takes_a_bearer_token_from_a_cookie(service: Service) -> None:
    """Reads the cookie `Authorization` where the header is missing."""
    value = f"Authorization=Bearer {service.key.decode()}"
    amend.accept(service, lambda request: amend.no_header(request) and request.headers.get("cookie") == value)


@fault("AUTH-3")
def takes_the_hash_in_base64_for_the_key(service: Service) -> None:
    """Takes the SHA-256 of the key in base64, as it is stored, for the key."""
    stored = b64encode(sha256(service.key).digest())
    amend.accept_keys(service, lambda given, key: given == stored)


@fault("AUTH-3")
def takes_the_sha512_for_the_key(service: Service) -> None:
    """Takes the SHA-512 of the key, as it is stored, for the key."""
    stored = sha512(service.key).hexdigest().encode()
    amend.accept_keys(service, lambda given, key: given == stored)


@fault("AUTH-3")
def reads_the_key_up_to_a_slash(service: Service) -> None:
    """Takes what follows a slash for something else than the key."""
    amend.accept_keys(service, lambda given, key: given.partition(b"/")[0] == key)


@fault("AUTH-4")
def looks_at_the_status_before_the_scheme(service: Service) -> None:
    """Answers 409 to a cancel with another scheme than bearer when the order has shipped."""

    def change(request: Request, response: Response) -> Response | None:
        other = not amend.no_header(request) and service.bearer_token(request) is None
        shipped = other and amend.shipped(amend.order_to_cancel(service, request))
        return service.error(409, "Shipped.") if shipped else None

    amend.refusals(service, change)
