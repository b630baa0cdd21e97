"""Dates with a time: ISO 8601 (which section 2 of the specification names) and RFC 3339 (which OpenAPI means by it).

Written out because the available parsers are too loose or too strict: `datetime.fromisoformat` accepts a bare date and
any separator; others refuse a leap second, a comma before the fraction, or the basic form. Pure.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Sequence
from contextlib import suppress
from datetime import date, datetime, timedelta
from functools import lru_cache
from itertools import pairwise

#: How far apart two readings of an expected date may be: a service may compute it from the time of the request.
MINUTE = timedelta(minutes=1)

#: ISO 8601 has a minus sign of its own, or a hyphen in its place.
MINUS = "\N{MINUS SIGN}"
_SIGN = f"[+{MINUS}-]"
_OFFSET = rf"(?P<offset>Z|{_SIGN}\d{{2}}(?::?\d{{2}})?)?"
_FRACTION = r"(?:[.,](?P<fraction>\d+))?"
# re.ASCII: \d would take the digits of every script.
_EXTENDED = re.compile(
    rf"(?P<year>\d{{4}}|{_SIGN}\d{{5,9}})-"  # expanded years have a sign and more digits, by agreement
    r"(?:(?P<month>\d{2})-(?P<day>\d{2})|W(?P<week>\d{2})-(?P<weekday>\d)|(?P<ordinal>\d{3}))"
    rf"T(?P<hour>\d{{2}})(?::(?P<minute>\d{{2}})(?::(?P<second>\d{{2}}))?)?{_FRACTION}{_OFFSET}",
    re.ASCII,
)
_BASIC = re.compile(
    rf"(?P<year>\d{{4}}|{_SIGN}\d{{6}})"
    r"(?:(?P<month>\d{2})(?P<day>\d{2})|W(?P<week>\d{2})(?P<weekday>\d)|(?P<ordinal>\d{3}))"
    rf"T(?P<hour>\d{{2}})(?:(?P<minute>\d{{2}})(?P<second>\d{{2}})?)?{_FRACTION}{_OFFSET}",
    re.ASCII,
)
#: The days that exist, by the length of their month.
_DAY = (
    r"(?:\d{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\d|30)|02-(?:0[1-9]|1\d|2[0-8]))"
    r"|(?:\d\d(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)-02-29)"
)
_OF_RFC3339 = rf"{_DAY}[Tt](?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d+)?(?:[Zz]|[+-](?:[01]\d|2[0-3]):[0-5]\d)"
_RFC3339 = re.compile(_OF_RFC3339, re.ASCII)
_RFC3339_LINES = re.compile(rf"(?:{_OF_RFC3339}\n)*+", re.ASCII)


def all_rfc3339(texts: Sequence[str]) -> bool:
    """Whether each of `texts` is a date-time by RFC 3339. There may be millions: all are matched at once, unless there
    may be leap seconds among them."""
    lines = "\n".join([*texts, ""])
    if lines.count("\n") == len(texts) and _RFC3339_LINES.fullmatch(lines) is not None:
        return True
    return ":60" in lines and all(map(is_rfc3339, texts))


@lru_cache(maxsize=2**16)
def is_iso8601(text: str) -> bool:
    """Whether `text` is a date with a time by ISO 8601: calendar, week or ordinal date, basic or extended form, with or
    without offset, at least to the hour, also with years of more than four digits. A bare date, or a blank instead of
    the `T`, is not."""
    if is_rfc3339(text):  # ISO 8601 wants capitals; RFC 3339, a profile of it, lets `t` and `z` pass
        return True
    parts = _parts(text)
    return parts is not None and _exists(parts)


def is_rfc3339(text: str) -> bool:
    """Whether `text` is a date-time by RFC 3339 section 5.6; the second 60 only in the last minute of a UTC day, where
    leap seconds are (section 5.7)."""
    if text[16:19] != ":60":
        return _RFC3339.fullmatch(text) is not None
    before = f"{text[:17]}59{text[19:]}"
    return _RFC3339.fullmatch(before) is not None and _ends_a_day(int(text[11:13]), int(text[14:16]), before[19:])


def instant(text: str) -> datetime | str:
    """A value that is equal for two texts that name the same moment, however they are written: a `datetime`, in local
    time if there is no offset. A date-time that no `datetime` can hold, as in the years 0 and 10000, is returned in
    capitals, and anything else unchanged."""
    capitals = text.upper()
    parts = _parts(capitals)
    with suppress(ValueError, OverflowError):
        if parts is None:
            return datetime.fromisoformat(capitals)
        if _exists(parts):
            return _reckoned(parts)
    return text if parts is None else capitals


def _parts(text: str) -> dict[str, str | None] | None:
    """The parts of a text in the form of an ISO 8601 date with time, minus signs as hyphens; else None."""
    match = _EXTENDED.fullmatch(text) or _BASIC.fullmatch(text)
    if match is None:
        return None
    parts = match.groupdict()
    return {name: part and part.replace(MINUS, "-") for name, part in parts.items()} if MINUS in text else parts


def _reckoned(parts: dict[str, str | None]) -> datetime:
    """The moment of an existing date-time, from its parts. Python reads no ordinal date, hour 24 or leap second, and
    takes fractions of hours and minutes for fractions of seconds."""
    part = _numbers(parts)
    if "week" in part:
        day = date.fromisocalendar(part["year"], part["week"], part["weekday"])
    else:
        day = date(part["year"], part.get("month", 1), part.get("day", 1))
        day += timedelta(days=part.get("ordinal", 1) - 1)
    passed = timedelta(hours=part["hour"], minutes=part.get("minute", 0), seconds=part.get("second", 0))
    unit = "seconds" if "second" in part else "minutes" if "minute" in part else "hours"
    passed += timedelta(**{unit: float(f"0.{parts['fraction'] or 0}")})
    zone = parts["offset"] and datetime.fromisoformat(f"2000-01-01T00:00{parts['offset']}").tzinfo
    return datetime(day.year, day.month, day.day, tzinfo=zone or None) + passed


def same(one: object, other: object) -> bool:
    """Whether two values are equal, or name the same moment."""
    if isinstance(one, str) and isinstance(other, str):
        return one == other or instant(one) == instant(other)
    return one == other


def close(one: object, other: object) -> bool:
    """Whether two values are equal, or name moments at most a MINUTE apart."""
    if same(one, other):
        return True
    if not (isinstance(one, str) and isinstance(other, str)):
        return False
    try:
        return bool(abs(instant(one) - instant(other)) <= MINUTE)  # type: ignore[operator]
    except TypeError:  # no dates, or only one of them with an offset
        return False


def one_way(values: Sequence[object]) -> bool:
    """Whether all of these moments go forward in time, or all go back. False if some are not moments, or cannot be
    compared."""
    found = (instant(value) for value in values if isinstance(value, str))
    moments = [moment for moment in found if isinstance(moment, datetime)]
    try:
        ahead = [one <= other for one, other in pairwise(moments)]
        back = [one >= other for one, other in pairwise(moments)]
    except TypeError:  # only one of them with an offset
        return False
    return len(moments) == len(values) and (all(ahead) or all(back))


def _numbers(parts: dict[str, str | None]) -> dict[str, int]:
    return {name: int(text) for name, text in parts.items() if text is not None and name not in ("offset", "fraction")}


def _exists(parts: dict[str, str | None]) -> bool:
    part = _numbers(parts)
    if part["hour"] == 24 and (parts.get("fraction") or "").strip("0"):
        return False
    if part.get("second") == 60 and not _ends_a_day(part["hour"], part["minute"], parts["offset"] or ""):
        return False
    return _day_exists(part) and _time_exists(part) and _offset_exists(parts["offset"])


def _day_exists(part: dict[str, int]) -> bool:
    year = 2000 + part["year"] % 400  # the calendar repeats itself; Python's ends with the years 1 and 9999
    if "week" in part:
        weeks = date(year, 12, 28).isocalendar().week
        return 1 <= part["week"] <= weeks and 1 <= part["weekday"] <= 7
    if "ordinal" in part:
        return 1 <= part["ordinal"] <= 365 + calendar.isleap(year)
    if not 1 <= part["month"] <= 12:
        return False
    _, days = calendar.monthrange(year, part["month"])
    return 1 <= part["day"] <= days


def _time_exists(part: dict[str, int]) -> bool:
    hour, minute, second = part["hour"], part.get("minute", 0), part.get("second", 0)
    if hour == 24:  # midnight at the end of the day
        return minute == 0 and second == 0
    return hour <= 23 and minute <= 59 and second <= 60  # 60: a leap second


def _ends_a_day(hour: int, minute: int, ending: str) -> bool:
    """Whether a minute is the last of a day in UTC, the only one that may have a leap second. `ending` ends with the
    offset from UTC. Without an offset, any minute will do that some offset in use makes the last: these are multiples
    of a quarter of an hour."""
    found = re.search(r"([+-]\d\d):?(\d\d)?$", ending)
    if found is None and ending[-1:] not in ("Z", "z"):
        return minute % 15 == 14
    ahead = 60 * int(found[1]) + int(f"{found[1][0]}{found[2] or 0}") if found else 0
    return (60 * hour + minute + 1 - ahead) % (24 * 60) == 0


def _offset_exists(offset: str | None) -> bool:
    if offset is None or offset in "Zz":
        return True
    digits = offset[1:].replace(":", "")
    return int(digits[:2]) <= 23 and int(digits[2:] or "0") <= 59
