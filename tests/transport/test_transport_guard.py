"""The guard: whatever is asked of it, no order is cancelled that was not handed out, by no reading of the id."""

from __future__ import annotations

import contextlib
import math
import random
import re
import unicodedata
from collections.abc import Iterator
from urllib.parse import quote, unquote

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from conformance.contract.transitions import State
from conformance.target import Mode
from conformance.transport import guard as module
from conformance.transport.guard import ORDERS, Guard, Refused

LOW, HIGH = -(2**63), 2**63 - 1
IDS = (
    st.integers(LOW, HIGH)
    | st.integers(-5, 2000)
    | st.sampled_from([0, 1, 2**31 - 1, 2**31, 2**32, 2**53, 2**53 + 1, 10**18, HIGH, LOW, HIGH - 1])
)
LISTINGS = st.lists(IDS, max_size=6)


# --- a reading of segments that owes nothing to the guard's


def single_readings(text: str) -> Iterator[int]:
    """What careless code makes of a decoded path segment, each line a way that such code is written."""
    with contextlib.suppress(ValueError):
        yield int(text)  # Python: blanks, underscores, digits of any script
    ascii_text = "".join(str(unicodedata.digit(char, char)) for char in text)
    for candidate in {text, ascii_text, text.strip(), text.replace(",", ""), text.replace(" ", "")}:
        prefix = re.match(r"\s*([+-]?[0-9]+)", candidate)
        if prefix:
            yield int(prefix[1])  # atoi, parseInt
        with contextlib.suppress(ValueError, OverflowError):
            yield int(float(candidate))  # Number(), parseFloat
        number = re.match(r"\s*[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?", candidate)
        if number:
            with contextlib.suppress(OverflowError):
                yield int(float(number[0]))  # strtod
        hexadecimal = re.match(r"\s*([+-]?)0[xX]([0-9a-fA-F]+)", candidate)
        if hexadecimal:
            yield int(hexadecimal[1] + hexadecimal[2], 16)  # strtol with base 0
    if not re.match(r"\s*[+-]?[0-9]", text):
        yield 0  # atoi of anything else


def further_readings(number: int) -> Iterator[int]:
    """What becomes of an integer on its way through types that cannot hold it."""
    yield number
    yield -number
    with contextlib.suppress(OverflowError):
        yield int(float(number))
    for bits in (31, 32, 64):
        wrapped = number % 2**bits
        yield wrapped
        yield wrapped - 2**bits  # two's complement
    for low, high in ((-(2**31), 2**31 - 1), (LOW, HIGH)):
        yield min(max(number, low), high)


def careless_readings(segment: str) -> set[int]:
    return {further for single in single_readings(unquote(segment)) for further in further_readings(single)}


def together(one: int, other: int) -> bool:
    """Whether two ids fall together: modulo 2^31, as doubles, clamped to a range, each with or without its sign."""
    return any(
        signed % 2**31 == other % 2**31
        or double(signed) == double(other)
        or any(min(max(one, low), high) == other for low, high in ((-(2**31), 2**31 - 1), (LOW, HIGH)))
        for signed in (one, -one)
    )


def double(number: int) -> float:
    return float(number) if abs(number) < 10**300 else number * math.inf


# --- segments that are out to be mistaken


def disguised(number: int, kind: int, times: int) -> str:
    """`number` as a segment that some reading takes for it."""
    arabic = "".join(chr(0x660 + int(digit)) if digit.isdigit() else digit for digit in str(number))
    fullwidth = "".join(chr(0xFF10 + int(digit)) if digit.isdigit() else digit for digit in str(number))
    kinds = (
        str(number),
        str(-number),
        f"+{number}",
        f"{number}abc",
        f"{number}.5",
        f"{number}.",
        f"{number}e0",
        f"{number}.e0",
        f"%20{number}",
        f"{number}%00",
        f"00{number}",
        f"{number:x}" if number < 0 else f"0x{number:x}",
        quote(arabic),
        fullwidth,
        str(number + times * 2**32),
        str(number - times * 2**31),
        str(number + times * 2**64),
        str(number + 2**64 * 10**40),
        f"{number:_}",
        f"{number:,}",
        "".join(f"%{ord(char):02x}" for char in str(number)),
        str(float(number)),
        f"{float(number):e}",
        str(number + (1 if abs(number) >= 2**54 else 0)),
    )
    return kinds[kind % len(kinds)]


@st.composite
def listings_and_segments(draw: st.DrawFn) -> tuple[list[int], str]:
    listed = draw(LISTINGS)
    plain = st.text(st.characters(codec="utf-8"), max_size=8).map(quote)
    numeric = st.text(st.sampled_from("0123456789.eExX+-abc %_,"), min_size=1, max_size=12).map(quote)
    hostile = st.builds(
        disguised, st.sampled_from(listed) if listed else IDS, st.integers(0, 23), st.integers(-3, 2**33)
    )
    return listed, draw(hostile | plain | numeric | IDS.map(str))


def guard(mode: Mode, listed: list[int], handed_out: list[int] | None = None) -> Guard:
    made = Guard(mode)
    made.saw_listing(listed)
    made.hand_out(handed_out or [], State.PENDING)
    return made


@given(LISTINGS, st.text().map(quote), st.lists(IDS), st.sampled_from(["DELETE", "PUT", "POST", "PATCH", "HEAD", "X"]))
def test_observe_sends_get_only(listed: list[int], segment: str, handed: list[int], method: str) -> None:
    observing = guard(Mode.OBSERVE, listed, handed)
    for path in (ORDERS + segment, "/store/orders", "/", segment):
        with pytest.raises(Refused, match="observe"):
            observing.check(method, path)
        observing.check("GET", path)


@given(
    st.sampled_from(Mode),
    st.sampled_from(["POST", "PUT", "PATCH", "TRACE", "CONNECT", "delete", "Delete", "", "PROPFIND"]),
)
def test_no_mode_sends_a_method_that_could_write(mode: Mode, method: str) -> None:
    with pytest.raises(Refused):
        guard(mode, [], [1]).check(method, ORDERS + "1")


@settings(max_examples=200)
@given(listings_and_segments())
@example(([1000], "1.e3"))
@example(([12345], str(12345 + 2**64 * 10**40)))
@example(([1024], str(2**60 + 1000)))
@example(([HIGH], "1e300"))
@example(([HIGH], "9" * 60))
@example(([LOW], "-" + "9" * 60))
@example(([7], quote("٧")))
@example(([7], quote("⁷")))
@example(([255], "0xFF"))
@example(([0], "abc"))
@example(([1], "-1"))
@example(([4294967296 + 5], "5"))
@example(([2**53 + 1], str(2**53)))
@example(([10], "1_0"))
def test_guarded_never_reaches_a_listed_order(case: tuple[list[int], str]) -> None:
    listed, segment = case
    if guard(Mode.GUARDED, listed).permits(segment):
        assert not careless_readings(segment) & set(listed)


@settings(max_examples=100)
@given(LISTINGS, LISTINGS, IDS)
def test_the_service_may_have_misread_what_it_stored(listed: list[int], handed: list[int], sent: int) -> None:
    """An order whose id the service keeps in 32 bits, as a double or without its sign is found under other ids too."""

    def stored(number: int) -> set[int]:
        return {number % 2**32, number % 2**31, int(float(number)), abs(number)}

    if guard(Mode.GUARDED, listed, handed).permits(str(sent)):
        assert not any(stored(sent) & stored(number) for number in listed)


@settings(max_examples=100)
@given(listings_and_segments(), LISTINGS)
def test_full_reaches_only_what_was_handed_out(case: tuple[list[int], str], others: list[int]) -> None:
    handed, segment = case
    listed = [*others, *handed]
    if guard(Mode.FULL, listed, handed).permits(segment):
        plain = re.fullmatch(r"0|-?[1-9][0-9]*", segment)
        exactly = plain is not None and int(segment) in handed
        assert exactly or not careless_readings(segment) & (set(others) - set(handed))


@given(LISTINGS, LISTINGS)
def test_full_permits_what_was_handed_out(listed: list[int], handed: list[int]) -> None:
    """Also where others are listed that it could be mistaken for: that is a risk its owner has taken."""
    allowed = guard(Mode.FULL, listed, handed)
    assert all(allowed.permits(str(number)) for number in handed)


@given(IDS, LISTINGS)
def test_an_alias_is_permitted_if_it_touches_nothing_else(number: int, others: list[int]) -> None:
    allowed = guard(Mode.FULL, [number, *others], [number])
    touched = {other for other in others if other != number and together(other, number)}
    assume(not touched and not careless_readings(f"{number}abc") & set(others))
    assert allowed.permits(f"{number}abc") or allowed.mistakable([number, 0]) - {number}


def test_handed_out_means_full() -> None:
    """Handing an order out to a run in guarded mode does not make it cancel one."""
    assert not guard(Mode.GUARDED, [5], [5]).permits("5")


@given(st.lists(IDS, min_size=1, max_size=5, unique=True), st.data())
def test_what_is_given_back_is_somebody_elses(handed: list[int], data: st.DataObject) -> None:
    allowed = guard(Mode.FULL, handed, handed)
    back = data.draw(st.sampled_from(handed))
    allowed.take_back([back])
    assert not allowed.permits(str(back))
    assert all(allowed.permits(str(number)) for number in handed if number != back)


@given(st.lists(st.integers(LOW, HIGH) | st.integers(0, 3000), max_size=50), st.integers(0, 2**32), st.integers(1, 5))
def test_absent_ids_are_permitted_and_never_listed(listed: list[int], seed: int, count: int) -> None:
    for mode in (Mode.GUARDED, Mode.FULL):
        careful = guard(mode, listed)
        drawn = careful.absent_ids(count, random.Random(seed))
        assert len(set(drawn)) == count
        for number in drawn:
            assert LOW <= number <= HIGH
            assert careful.permits(str(number))
            assert not careless_readings(str(number)) & set(listed)


def test_absent_ids_keep_away_from_ids_to_come() -> None:
    careful = guard(Mode.GUARDED, list(range(1000, 2000)))
    for number in careful.absent_ids(20, random.Random(1)):
        assert not any(careful.mistakable([number + step]) for step in range(-2000, 2000, 7))


def test_absent_ids_of_a_large_listing_are_found() -> None:
    rng = random.Random(7)
    careful = guard(Mode.GUARDED, [rng.randrange(LOW, HIGH) for _ in range(5_000)])
    assert len(careful.absent_ids(5, rng)) == 5


def test_listed_numbers_beyond_any_double_are_compared_like_others() -> None:
    careful = guard(Mode.GUARDED, [10**400, -(10**400)])
    assert careful.permits("5001")
    assert not careful.permits(str(10**400))
    assert not careful.permits(str(2 * 10**400))


def test_absent_ids_depend_on_the_seed_alone() -> None:
    draws = [guard(Mode.GUARDED, [1, 2]).absent_ids(3, random.Random(seed)) for seed in (1, 1, 2)]
    assert draws[0] == draws[1] != draws[2]


def test_a_listing_without_room_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    careful = guard(Mode.GUARDED, [1])
    monkeypatch.setattr(Guard, "_draw", lambda self, rng, margin: None)
    with pytest.raises(Refused, match="no room"):
        careful.absent_ids(1, random.Random(1))


def test_nothing_is_known_to_be_absent_before_a_listing_was_read() -> None:
    for mode in (Mode.GUARDED, Mode.FULL):
        blind = Guard(mode)
        assert not blind.permits("123456789012345")
        with pytest.raises(Refused, match="no listing has been read"):
            blind.absent_ids(1, random.Random(1))
    handed = Guard(Mode.FULL)
    handed.hand_out([5], State.PENDING)
    assert handed.permits("5")


@settings(max_examples=200)
@given(st.lists(st.lists(IDS | st.integers(-(10**30), 10**30), max_size=4), max_size=4), IDS, st.integers(0, 3))
def test_ids_that_fall_together_are_found(listings: list[list[int]], number: int, few: int) -> None:
    """However they came: in one listing or several, sorted in one by one or all anew."""
    careful = Guard(Mode.GUARDED)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(module, "FEW", few)
        for listing in listings:
            careful.saw_listing(listing)
    listed = {other for listing in listings for other in listing}
    assert careful.listed == listed
    assert careful.mistakable([number]) == {other for other in listed if together(number, other)}


def test_orders_that_appear_between_listing_and_request() -> None:
    """An id that was drawn is looked at again when it is sent, with all that has been listed in the meantime."""
    careful = guard(Mode.GUARDED, [1, 2, 3])
    (drawn,) = careful.absent_ids(1, random.Random(1))
    assert careful.permits(str(drawn))
    careful.saw_listing([1, 2, 3, drawn % 2**31])
    assert not careful.permits(str(drawn))


@given(st.lists(st.integers(1, 10**6), min_size=1, max_size=20), st.integers(0, 2**32), st.integers(1, 10_000))
def test_drawn_ids_are_out_of_reach_of_ids_to_come(listed: list[int], seed: int, more: int) -> None:
    """A service that counts up from what is listed does not get there while a run lasts."""
    careful = guard(Mode.GUARDED, listed)
    (drawn,) = careful.absent_ids(1, random.Random(seed))
    assert not together(drawn, max(listed) + more)


def test_more_ids_than_can_be_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a listing as long, or of listings with others each time: nothing is known to be nobody's then."""
    monkeypatch.setattr(module, "MOST_REMEMBERED", 10)
    careful = guard(Mode.FULL, list(range(1, 9)), [5])
    assert careful.permits(str(2**50))
    careful.saw_listing(range(100, 103))
    assert len(careful.listed) == 8
    assert careful.permits("5")
    with pytest.raises(Refused, match="more ids were listed than are remembered"):
        careful.check("DELETE", f"{ORDERS}{2**50}")


@pytest.mark.parametrize(
    "number",
    [0, 7, -7, 2**31, 2**32 - 1, 2**32 + 1, 2**40 - 1, 2**53, -(2**53) - 1, HIGH, HIGH - 1, LOW, LOW + 1, 2**64],
)
def test_an_order_that_is_listed_without_an_id_may_have_any_that_is_in_use(number: int) -> None:
    """Or one to which a service clamps what is beyond int64."""
    careful = guard(Mode.GUARDED, [])
    assert careful.permits(str(number))
    careful.remember([], unidentified=True)
    assert not careful.permits(str(number))
    assert careful.permits(str(5 * 2**58 + 12345))
    assert careful.permits(str(5 + 2**32))  # an alias of order 5


def test_how_long_orders_have_been_held() -> None:
    """By the moments of exchanges alone, which an audit has as well: however long the provider took."""
    careful = guard(Mode.FULL, [])
    careful.heard(1000.0, 1000.1)
    careful.hand_out([1], State.SHIPPED)
    careful.hand_out([3], State.SHIPPED)
    careful.take_back([3])
    careful.heard(1005.0, 1005.1)
    careful.hand_out([2], State.PENDING)
    assert careful.held(0.4) == frozenset()
    careful.heard(1005.3, 1005.5)
    careful.heard(1005.1, 1005.2)  # one of several under way at once
    assert careful.held(0.4) == {1}
    careful.heard(1006.0, 1006.1)
    careful.take_back([1])
    assert careful.held(0.4) == {2}


def test_an_id_once_seen_stays_seen() -> None:
    careful = guard(Mode.GUARDED, [77])
    careful.saw_listing([])
    assert not careful.permits("77")


@pytest.mark.parametrize(
    "path",
    [
        "/store/orders",
        "/store/orders/",
        "/store/orders/1/2",
        "/store/orders/1%2F2",
        "/store/orders/1%2f..%2f2",
        "/store/orders/..",
        "/store/orders/%2E%2e",
        "/store/orders/.",
        "/store/orders/1%5C2",
        "/store/orders/*",
        "/store/orders/%2A",
        "/store/orders/1?all=true",
        "/store/orders/1#x",
        "/store/orders/1;2",
        "/pets/1",
        "/store/orders1",
        "//store/orders/1",
        "",
    ],
)
@pytest.mark.parametrize("mode", [Mode.GUARDED, Mode.FULL])
def test_a_cancel_addresses_exactly_one_order(mode: Mode, path: str) -> None:
    with pytest.raises(Refused, match="does not address exactly one order"):
        guard(mode, [], [1, 2]).check("DELETE", path)


@pytest.mark.parametrize(
    "spelling",
    [
        "/store/orders/{}/",
        "/store//orders/{}",
        "/store/%6frders/{}",
        "/store/%6Frders/{}",
        "/STORE/Orders/{}",
        "/store/orders/{};x",
    ],
)
def test_another_spelling_of_a_path_addresses_the_same_order(spelling: str) -> None:
    guard(Mode.FULL, [1, 2], [1]).check("DELETE", spelling.format(1))
    for mode, number in ((Mode.FULL, 2), (Mode.GUARDED, 1), (Mode.GUARDED, 2)):
        with pytest.raises(Refused, match="could be taken for order"):
            guard(mode, [1, 2], [1]).check("DELETE", spelling.format(number))


def test_refusals_say_why() -> None:
    with pytest.raises(Refused, match="could be taken for order 123, which was not handed out"):
        guard(Mode.GUARDED, [123]).check("DELETE", ORDERS + "123abc")
