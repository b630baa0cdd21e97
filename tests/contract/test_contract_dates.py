"""Dates with a time, by ISO 8601 and by RFC 3339."""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from conformance.contract.dates import MINUS, all_rfc3339, close, instant, is_iso8601, is_rfc3339, one_way

BOTH = (
    "2026-11-21T07:00:00Z",
    "2026-11-21t07:00:00z",
    "2026-11-21T07:00:00+00:00",
    "2026-11-21T07:00:00-00:00",
    "2026-11-21T07:00:00.123456789+14:00",
    "2026-11-21T23:59:59-23:59",
    "2016-12-31T23:59:60Z",
    "2016-12-31t23:59:60.5z",
    "2017-01-01T05:44:60+05:45",
    "2016-12-31T20:29:60-03:30",
    "2024-02-29T00:00:00Z",
    "2000-02-29T00:00:00Z",
    "0000-01-01T00:00:00Z",
    "9999-12-31T23:59:59Z",
)
ISO_ONLY = (
    "2026-11-21T07:00:00",
    "2026-11-21T07:00",
    "2026-11-21T07",
    "2026-11-21T07:00Z",
    "2026-11-21T07:00:00,5Z",
    "2026-11-21T07,5",
    "2026-11-21T07:00:00+01",
    "20261121T070000Z",
    "20261121T0700",
    "20261121T070000.5+0100",
    "2026-W47-6T07:00:00Z",
    "2026W476T070000Z",
    "2020-W53-5T00:00:00Z",
    "2026-325T07:00:00Z",
    "2026325T070000",
    "2024-366T00:00:00Z",
    "2026-11-21T24:00:00Z",
    "2026-11-21T24:00",
    "20161231T235960Z",
    "20170101T054460+0545",
    "2016-12-31T15:59:60-08",
    "2017-01-01T05:44:60",
    "+012026-11-25T10:00:00Z",
    "+12026-11-25T10:00:00.5+01:00",
    "+275760-09-13T00:00:00.000Z",
    "-271821-04-20T00:00:00.000Z",
    "\u2212000044-03-15T12:00Z",
    "+012024-02-29T10:00:00Z",
    "+012028-W52-7T10:00Z",
    "+012024-366T10:00Z",
    "+0120261125T100000Z",
    "+012026W476T10",
    "+012026329T10Z",
    "2026-11-21T07:00:00\u221203:30",
    "20261121T070000\u22120330",
    "2016-12-31T15:59:60\u221208",
)
NEITHER = (
    "",
    "2026-11-21",
    "2026-11",
    "07:00:00Z",
    "T07:00:00Z",
    "2026-11-21 07:00:00Z",
    "2026-11-21_07:00:00Z",
    " 2026-11-21T07:00:00Z",
    "2026-11-21T07:00:00Z ",
    "2026-11-21T07:00:00Z\n",
    "2026-11-21T07:00:00 Z",
    "2026-11-21T07:00:00 +01:00",
    "2026-11-21T07:00:00.Z",
    "2026-11-21T07:00:00+1:00",
    "2026-11-21T07:00:00+24:00",
    "2026-11-21T07:00:00+01:60",
    "2026-11-21T07:00:00ZZ",
    "2026-11-21T07:00:00UTC",
    "2026-11-21T7:00:00Z",
    "2026-11-21T07:60:00Z",
    "2026-11-21T07:00:61Z",
    "2026-11-21T12:34:60Z",
    "2016-12-31T23:59:60+01:00",
    "2016-12-31T23:59:60-00:01",
    "2016-12-31T12:34:60",
    "20161231T225960Z",
    "2026-11-21T25:00:00Z",
    "2026-11-21T24:00:01Z",
    "2026-11-21T24:01:00Z",
    "2026-11-21T24:00:00.5Z",
    "2026-00-21T07:00:00Z",
    "2026-13-21T07:00:00Z",
    "2026-11-00T07:00:00Z",
    "2026-11-31T07:00:00Z",
    "2026-02-29T07:00:00Z",
    "1900-02-29T07:00:00Z",
    "2026-W00-1T07:00:00Z",
    "2026-W54-1T07:00:00Z",
    "2021-W53-1T07:00:00Z",
    "2026-W47-0T07:00:00Z",
    "2026-W47-8T07:00:00Z",
    "2026-000T07:00:00Z",
    "2026-366T07:00:00Z",
    "26-11-21T07:00:00Z",
    "2026/11/21T07:00:00Z",
    "21.11.2026T07:00:00Z",
    "20261121T07:00:00Z",
    "2026-11-21T070000Z",
    "2026-1121T07:00:00Z",
    "Sat, 21 Nov 2026 07:00:00 GMT",
    "1795244400",
    "-2026-11-21T07:00:00Z",
    "+2026-11-21T07:00:00Z",
    "12026-11-21T07:00:00Z",
    "+012026-02-29T10:00:00Z",
    "+012026-11-25T10:00:61Z",
    "+012026-366T10:00Z",
    "+01202602290T100000Z",
    "+0120260229T100000Z",
    "+012026-11-25",
    "+" + "1" * 5000 + "-11-25T10:00:00Z",
    "2026\u221211\u221221T07:00:00Z",
    "2026-11-21T07:00:00\u221224:00",
    "2026-11-21T12:34:60\u221208:00",
    "２０２６-11-21T07:00:00Z",
    "2026-11-21T07:00:00.٣Z",  # digits of another script after the point
    "P1D",
)


@pytest.mark.parametrize("text", BOTH)
def test_rfc3339(text: str) -> None:
    assert is_rfc3339(text)
    assert is_iso8601(text)


@pytest.mark.parametrize("text", ISO_ONLY)
def test_iso8601_that_is_not_rfc3339(text: str) -> None:
    assert is_iso8601(text)
    assert not is_rfc3339(text)


@pytest.mark.parametrize("point", [".", ","])
def test_a_fraction_has_any_length(point: str) -> None:
    """Python refuses to convert more than 4,300 digits to a number."""
    text = f"2026-11-21T07:00:00{point}{'0' * 10_000}Z"
    assert is_iso8601(text)
    assert is_rfc3339(text) is (point == ".")
    assert is_iso8601(text.replace("T07", "T24"))
    assert not is_iso8601(text.replace("T07", "T24").replace("0Z", "1Z"))


@pytest.mark.parametrize("text", NEITHER)
def test_neither(text: str) -> None:
    assert not is_iso8601(text)
    assert not is_rfc3339(text)


@given(st.datetimes(), st.integers(-23 * 60 - 59, 23 * 60 + 59) | st.none(), st.integers(0, 12))
def test_every_moment_in_the_form_of_rfc3339_is_both(moment: datetime, offset: int | None, digits: int) -> None:
    fraction = f".{moment.microsecond:06}{'0' * 6}"[: digits + 1] if digits else ""
    zone = "Z" if offset is None else f"{'-' if offset < 0 else '+'}{abs(offset) // 60:02}:{abs(offset) % 60:02}"
    text = f"{moment.year:04}-{moment:%m-%dT%H:%M:%S}{fraction}{zone}"
    assert is_rfc3339(text)
    assert is_iso8601(text)


@given(st.datetimes(timezones=st.just(timezone(timedelta(hours=-3, minutes=-30)))))
def test_what_isoformat_writes_is_both(moment: datetime) -> None:
    assert is_rfc3339(moment.isoformat())
    assert is_iso8601(moment.replace(tzinfo=None).isoformat())


@given(st.dates())
@example(date(2020, 12, 31))
@example(date(2027, 1, 1))
def test_every_day_exists_in_every_form(day: date) -> None:
    year, week, weekday = day.isocalendar()
    ordinal = day.timetuple().tm_yday
    for text in (f"{day.year:04}-{ordinal:03}T00", f"{day.year:04}{ordinal:03}T00"):
        assert is_iso8601(text)
    if year <= 9999:
        assert is_iso8601(f"{year:04}-W{week:02}-{weekday}T00:00")
        assert is_iso8601(f"{year:04}W{week:02}{weekday}T0000")


@given(st.integers(1, 9999), st.integers(0, 99), st.integers(0, 99))
def test_no_other_day_does(year: int, month: int, day: int) -> None:
    try:
        date(year, month, day)
        exists = True
    except ValueError:
        exists = False
    assert is_iso8601(f"{year:04}-{month:02}-{day:02}T00:00:00Z") is exists
    assert is_rfc3339(f"{year:04}-{month:02}-{day:02}T00:00:00Z") is exists


@given(st.integers(1, 9999), st.integers(0, 60), st.integers(0, 9))
def test_weeks_exist_as_the_calendar_has_them(year: int, week: int, weekday: int) -> None:
    try:
        date.fromisocalendar(year, week, weekday)
        exists = True
    except ValueError:
        exists = False
    if (year, week) != (9999, 52):  # its last days are past what `date` holds
        assert is_iso8601(f"{year:04}-W{week:02}-{weekday}T12:00Z") is exists


TEMPLATE = "2026-11-21T07:00:00.5+01:00"


@given(
    st.text()
    | st.builds(lambda at, char: TEMPLATE[:at] + char + TEMPLATE[at + 1 :], st.integers(0, 26), st.characters())
)
def test_every_rfc3339_is_iso8601(text: str) -> None:
    assert not is_rfc3339(text) or is_iso8601(text)
    if is_iso8601(text):
        assert text.replace(MINUS, "-").isascii()


@given(
    st.lists(
        st.sampled_from([*BOTH, *ISO_ONLY, "", "\n", "soon"]) | st.datetimes().map(lambda at: f"{at.isoformat()}Z")
    )
)
@example([f"{BOTH[0]}\n{BOTH[1]}"])
@example([BOTH[0], f"{BOTH[1]}\n"])
@example([])
def test_many_at_once_are_judged_as_each_alone(texts: list[str]) -> None:
    assert all_rfc3339(texts) == all(map(is_rfc3339, texts))


def test_a_moment_is_the_same_however_it_is_written() -> None:
    same = ("2026-03-01T12:00:00Z", "2026-03-01T12:00:00.000Z", "2026-03-01T13:00:00+01:00", "20260301T120000Z")
    assert len({instant(text) for text in (*same, same[0].lower())}) == 1
    others = ("2026-03-01T12:00:01Z", "2026-03-01T12:00:00", "2026-03-01T12:00:00+01:00", "soon", "SOON", "")
    assert len({instant(text) for text in (same[0], *others)}) == 1 + len(others)


@pytest.mark.parametrize(
    "texts",
    [
        ("2026-05-06T10:30:00Z", "2026-126T10:30:00Z", "2026126T1030Z", "2026-W19-3T10.5Z", "2026-05-06T10:30Z"),
        ("2026-05-06T10:30:15Z", "2026-05-06T10:30.25Z", "20260506T1030,25Z", "2026-126T12:30:15+02"),
        ("2026-05-07T00:00:00Z", "2026-05-06T24:00:00Z", "2026-126T24Z", "20260506T240000+0000"),
        ("2017-01-01T00:00:00Z", "2016-12-31T23:59:60Z", "2017-01-01T00:59:60+01:00"),
        ("2026-05-06T10:30:00", "2026-126T10.5"),
        ("2026-05-06T10:30:00Z", "2026-05-06T07:00:00\u221203:30", "+002026-05-06T10:30Z", "+0020260506T07\u221203:30"),
    ],
)
def test_forms_of_iso8601_that_name_one_moment(texts: tuple[str, ...]) -> None:
    assert all(map(is_iso8601, texts))
    assert len({instant(text) for text in texts}) == 1


def test_a_year_that_python_does_not_know_is_taken_as_it_is_written() -> None:
    assert instant("0000-01-01T00:00:00Z") == "0000-01-01T00:00:00Z"
    assert instant("+012026-11-25T10:00:00Z") == "+012026-11-25T10:00:00Z"
    assert instant("2026-366t00:00z") == "2026-366T00:00Z"


@pytest.mark.parametrize(
    ("one", "other", "near"),
    [
        ("2026-05-06T10:30:00Z", "2026-05-06T12:31:00+02:00", True),
        ("2026-05-06T10:30:00Z", "2026-05-06T10:31:01Z", False),
        ("2026-05-06T10:30:00", "2026-05-06T10:30:30", True),
        ("2026-05-06T10:30:00", "2026-05-06T10:30:30Z", False),  # a local time may be any
        ("soon", "soon", True),
        ("soon", "later", False),
        ("soon", "2026-05-06T10:30:00Z", False),
        (None, None, True),
        (5, "2026-05-06T10:30:00Z", False),
    ],
)
def test_moments_that_are_close(one: object, other: object, near: bool) -> None:
    assert close(one, other) is close(other, one) is near


@pytest.mark.parametrize(
    ("moments", "told"),
    [
        ((), True),
        (("2026-11-24T10:00:00Z", "2026-11-24T10:00:00Z", "2026-11-24T13:00:00+02:00"), True),
        (("2026-11-24T10:00:00Z", "2026-11-24T11:00:00+02:00", "2026-11-24T08:00:00Z"), True),
        (("2026-11-24T10:00:00Z", "2026-11-24T12:00:00Z", "2026-11-24T11:00:00Z"), False),
        (("2026-11-24T10:00:00Z", "2026-11-24T12:00:00"), False),
        (("2026-11-24T10:00:00Z", "tomorrow"), False),
        (("2026-11-24T10:00:00Z", 7), False),
        (("soon", "sooner"), False),
    ],
)
def test_moments_that_go_one_way(moments: tuple[object, ...], told: bool) -> None:
    assert one_way(moments) is told
