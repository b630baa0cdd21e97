"""A listing as read from its bytes (section 4.1 of the specification), and what is wrong with it.

Listings may be long, and a run reads hundreds of them, so there is a fast way for the usual form: msgspec reads an
array of Orders with nothing odd about any of them, and its elements are not looked at again. Whatever msgspec refuses,
or might misread, goes the thorough way through `jsontext`. Both ways agree on every byte sequence. Pure.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any, cast

import msgspec
from msgspec import UNSET, UnsetType

from conformance.contract import dates
from conformance.contract.jsontext import INT64, JsonText, NotJson, Number, integer, parse
from conformance.contract.validators import as_json, order_problems, shown

#: How many problems of one kind a message spells out.
SHOWN = 3
#: If a listing has fewer elements than this, and one is odd, all of it goes the thorough way: telling them apart would
#: gain too little.
MANY = 100
#: How many elements are read at a time if some are odd, and how many at most are then looked at one by one.
CHUNK, FEW = 1024, 64

#: The range of ids (section 2).
Int64 = Annotated[int, msgspec.Meta(ge=INT64.start, le=INT64.stop - 1)]


class Order(msgspec.Struct, rename="camel", forbid_unknown_fields=True, gc=False):
    """An Order with nothing odd about it: only fields of section 2, of the right types."""

    id: Int64 | UnsetType = UNSET
    pet_id: Int64 | UnsetType = UNSET
    quantity: int | UnsetType = UNSET
    ship_date: str | UnsetType = UNSET
    complete: bool | UnsetType = UNSET

    def fields(self) -> dict[str, Any]:
        """The Order as a JSON object."""
        return {written: value for name, written in FIELDS.items() if (value := getattr(self, name)) is not UNSET}


class Extended(Order, forbid_unknown_fields=False, gc=False):
    """The same, with any further fields."""


#: The fields of an Order, with their names in JSON.
FIELDS = dict(zip(Order.__struct_fields__, Order.__struct_encode_fields__, strict=True))
_ORDERS, _RAWS = msgspec.json.Decoder(list[Order]), msgspec.json.Decoder(list[msgspec.Raw])
_OBJECTS = msgspec.json.Decoder(list[dict[str, Int64 | str | bool | None]])
_ENCODER = msgspec.json.Encoder()
#: What msgspec raises for bytes that are not a JSON text; `parse` then says why.
UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


@dataclass
class Listing:
    """A listing as read: its elements in order, each a plain Order or any other JSON value, and the member names that
    occurred twice in an object."""

    elements: list[Any]
    doubled_names: list[str] = field(default_factory=list)

    @classmethod
    def read(cls, body: bytes, thoroughly: Callable[[], JsonText] | None = None) -> Listing | None:
        """The listing in `body`, or None if that is not an array. If it has to be parsed as JSON, `thoroughly` does so,
        for a caller that needs the result as well. Raises NotJson."""
        found = cls._fast(body)
        return found if found is not None else cls.of(thoroughly() if thoroughly else parse(body))

    @classmethod
    def _fast(cls, body: bytes) -> Listing | None:
        """The same by the fast way, if no or few elements are odd; else None."""
        try:
            orders = _orders(body)
            if orders is not None:
                return cls(orders)
            raws = _RAWS.decode(body)
            if len(raws) >= MANY and _simple(b"[%b]" % raws[0]) is not None:
                found = cls([])
                for start in range(0, len(raws), CHUNK):
                    found._add(raws[start : start + CHUNK])
                return found
        except (*UNREADABLE, NotJson):
            pass  # the thorough way says where
        return None

    @classmethod
    def of(cls, text: JsonText) -> Listing | None:
        """The listing in a JSON text, or None if that is not an array."""
        return cls(text.value, text.doubled_names) if isinstance(text.value, list) else None

    def _add(self, raws: list[msgspec.Raw]) -> None:
        """Read further elements: together if all are simple; else by halves, so that only the odd ones go the thorough
        way."""
        elements = _simple(b"[%b]" % b",".join(raws))
        if elements is not None:
            self.elements += elements
        elif len(raws) > 1:
            self._add(raws[: len(raws) // 2])
            self._add(raws[len(raws) // 2 :])
        else:
            text = parse(bytes(raws[0]))
            self.elements.append(text.value)
            self.doubled_names += text.doubled_names

    @cached_property
    def by_id(self) -> Mapping[int, Any]:
        """The elements that have a readable id; the last one if an id occurs twice."""
        found = dict(zip(self._ids, self.elements, strict=True))
        found.pop(None, None)
        return _ById(cast("dict[int, Any]", found))

    @property
    def size(self) -> str:
        """How many elements there are, in words."""
        return f"{len(self.elements)} element{'' if len(self.elements) == 1 else 's'}"

    @cached_property
    def without_id(self) -> int:
        """How many elements have no id, or one that is not an integer."""
        return self._ids.count(None)

    @cached_property
    def odd_ids(self) -> int:
        """How many elements have an id that is not an integer."""
        return sum(
            "id" in element for element in self.unidentified if isinstance(element, dict) and _id(element) is None
        )

    @cached_property
    def ids(self) -> frozenset[int]:
        """Every id in the listing."""
        return frozenset(self.by_id)

    def left_out(self, orders: Iterable[int]) -> list[int]:
        """Those of `orders` that the listing leaves out. No field is required, so an element without an id may be any
        order: if there are as many such elements as missing ids, nothing is left out."""
        known = self.ids
        lacking = [order for order in orders if order not in known]
        return lacking if len(lacking) > self.without_id else []

    @cached_property
    def unidentified(self) -> list[Any]:
        """The elements without an id that an Order may have."""
        if not self._odd and not self.without_id:
            return []
        pairs = zip(self._ids, self.elements, strict=True)
        return [element for number, element in pairs if number is None or number not in INT64]

    def doubled_ids(self) -> list[int]:
        """The ids that more than one element has (LIST-4)."""
        if len(self.by_id) + self.without_id == len(self.elements):
            return []
        return [number for number, count in Counter(self._ids).items() if number is not None and count > 1]

    def problems(self) -> list[str]:
        """What is wrong with its elements, at most SHOWN of a kind, with their index (LIST-2)."""
        return _several((f"element {index}", problem) for index, odd in self._odd for problem in order_problems(odd))

    def unconventional_dates(self) -> list[str]:
        """The shipDates that are ISO 8601 and not RFC 3339 (LIST-10)."""
        return _several(
            (f"element {index}", f"shipDate is {shown(text)}, which is not RFC 3339")
            for index, odd in self._odd
            if isinstance(odd, dict)
            and isinstance(text := odd.get("shipDate"), str)
            and dates.is_iso8601(text)
            and not dates.is_rfc3339(text)
        )

    def unconventional_integers(self) -> list[str]:
        """The integers written with fraction or exponent, and doubled names (LIST-11)."""
        written = (
            (f"element {index}", f"{name} is written {shown(odd[name])}")
            for index, odd in self._odd
            if isinstance(odd, dict)
            for name in ("id", "petId", "quantity")
            if isinstance(odd.get(name), Number) and odd[name].integral is not None
        )
        doubled = [f"the name {name!r} occurs twice in one object" for name in self.doubled_names[:SHOWN]]
        return _several(written) + doubled

    @cached_property
    def _plain(self) -> bool:
        """Whether all elements are plain Orders."""
        return set(map(type, self.elements)) <= {Order}

    @cached_property
    def _odd(self) -> list[tuple[int, Any]]:
        """The elements that may have something odd about them besides further fields, with their index."""
        if self._plain:
            return []
        places = [place for place, element in enumerate(self.elements) if type(element) is not Order]
        return [(place, self.elements[place]) for place in self._odd_places(places)]

    def _odd_places(self, places: list[int]) -> Iterator[int]:
        """Those of `places` whose elements may be more than Orders with further fields."""
        if _merely_extended([self.elements[place] for place in places]):
            return
        if len(places) <= FEW:
            yield from places
        else:
            yield from self._odd_places(places[: len(places) // 2])
            yield from self._odd_places(places[len(places) // 2 :])

    @cached_property
    def _ids(self) -> list[int | None]:
        """The id of each element; None if it has none that is an integer."""
        if self._plain:
            found = list(map(operator.attrgetter("id"), self.elements))
            if UNSET not in found:
                return found
        return [_id(element) for element in self.elements]


def _id(element: Any) -> int | None:
    if type(element) is Order:
        return None if element.id is UNSET else element.id
    return integer(element.get("id")) if isinstance(element, dict) else None


class _ById(Mapping[int, Any]):
    """The elements of a listing by id, as JSON values."""

    def __init__(self, elements: dict[int, Any]) -> None:
        self._elements = elements

    def __getitem__(self, number: int) -> Any:
        element = self._elements[number]
        return element.fields() if type(element) is Order else element

    def __contains__(self, number: object) -> bool:
        return number in self._elements

    def __iter__(self) -> Iterator[int]:
        return iter(self._elements)

    def __len__(self) -> int:
        return len(self._elements)


def _orders(text: bytes) -> list[Order] | None:
    """The elements of a JSON array if all are plain Orders; None if anything is odd that their types allow: escapes,
    names that occur twice in an object, dates other than those of RFC 3339. Raises UNREADABLE if the text is not JSON,
    or might not be."""
    try:
        orders = _ORDERS.decode(text)
    except msgspec.ValidationError:
        return None
    return orders if _usual_dates(orders) and _named_once(text, orders) else None


def _simple(text: bytes) -> list[Any] | None:
    """The elements of a JSON array if all are plain Orders, or all are objects of plain values; else None. Raises
    UNREADABLE like `_orders`."""
    orders = _orders(text)
    if orders is not None:
        return orders
    try:
        objects = _OBJECTS.decode(text)
    except msgspec.ValidationError:
        return None
    return objects if _named_once(text, objects) else None


def _named_once(text: bytes, values: list[Any]) -> bool:
    """Whether a JSON array, which was read as `values`, has no escapes, and no name twice in an object. When the values
    are written again, each name occurs once; if one occurred twice, the text has more quotes than that."""
    if b"\\" in text:
        return False
    again = (_ENCODER.encode(values[start : start + CHUNK]) for start in range(0, len(values), CHUNK))
    return sum(part.count(b'"') for part in again) == text.count(b'"')


def _merely_extended(elements: list[Any]) -> bool:
    """Whether JSON values are Orders with nothing odd about them but further fields."""
    try:
        return _usual_dates(msgspec.convert(elements, list[Extended]))
    except (msgspec.ValidationError, UnicodeEncodeError):  # the latter of a lone surrogate, escaped
        return False


def _usual_dates(orders: Sequence[Order]) -> bool:
    """Whether all dates of the orders are in the form of RFC 3339."""
    return dates.all_rfc3339([text for text in map(operator.attrgetter("ship_date"), orders) if text is not UNSET])


def _several(found: Iterator[tuple[str, str]]) -> list[str]:
    """Sentences "where what", at most SHOWN that begin with the same word, then the number of the others."""
    kinds: Counter[str] = Counter()
    sentences = []
    for where, what in found:
        kind = what.partition(" ")[0]
        kinds[kind] += 1
        if kinds[kind] <= SHOWN:
            sentences.append(f"{where}: {what}")
    more = sum(count - SHOWN for count in kinds.values() if count > SHOWN)
    return [*sentences, f"and {more} more of these kinds"] if more else sentences


def alike(one: Any, other: Any, *, shipped: bool = False, later: bool = False) -> bool:
    """Whether two elements may show the same order in the same state: they agree in every field of section 2 that both
    have.

    No field is required, so a field that only one of them has means nothing; neither do further fields, such as an age
    or a signed link, which may change at any time. The `shipDate` of a pending order is an expectation, and may move;
    that of a `shipped` one is a fact, and must be the same moment, however it is written (section 2). The `complete` of
    a shipped order may change if one element is so much `later` than the other that the order may have been fulfilled:
    how that relates to the status is not shown (section 3).
    """
    if not (isinstance(one, dict) and isinstance(other, dict)):
        return bool(one == other)
    return not _differing(one, other, shipped, later)


def changes(now: Any, before: Any, *, shipped: bool = False, later: bool = False) -> str:
    """How an element differs from what it was, in words: the fields in which it is not `alike`, as JSON."""
    if isinstance(now, dict) and isinstance(before, dict):
        names = _differing(now, before, shipped, later)
        now, before = ({name: element[name] for name in names} for element in (now, before))
    return f"{as_json(now)} where {as_json(before)} was"


def _differing(one: dict[str, Any], other: dict[str, Any], shipped: bool, later: bool) -> list[str]:
    open_ = {"shipDate": not shipped, "complete": shipped and later}
    both = [name for name in FIELDS.values() if name in one and name in other and not open_.get(name)]
    same: dict[str, Callable[[Any, Any], bool]] = {"shipDate": dates.same}
    return [name for name in both if not same.get(name, _equal)(one[name], other[name])]


def _equal(one: Any, other: Any) -> bool:
    """Whether two values are equal, integers however they are written (LIST-11): not compared as floats, which are
    inexact beyond 2^53."""
    one, other = (value.integral or value if isinstance(value, Number) else value for value in (one, other))
    return bool(one == other)
