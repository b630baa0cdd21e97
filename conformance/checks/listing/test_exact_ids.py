"""LIST-8: ids to the digit."""

from __future__ import annotations

from decimal import Decimal

from conformance import outcomes, verify
from conformance.api import Api, Orders
from conformance.check import requirement
from conformance.checks import ids
from conformance.contract.jsontext import INT64, integer
from conformance.contract.listing import Listing
from conformance.target import Mode
from conformance.transport.answer import Answer


@requirement("LIST-8", chosen_ids=True, pending=1)
def test_ids_beyond_a_double(api: Api, orders: Orders) -> None:
    """Has orders placed with ids above 2^31, above 2^53 and near 2^63, and finds each in the listing to the digit."""
    draw = api.rng.randrange
    # No two agree in their low 32 bits or as doubles: what becomes of one is not taken for another.
    wanted = [
        2**31 + draw(10**6),
        2**32 + 10**7 + draw(10**6),
        2**53 + 2 * 10**7 + 1 + 2 * draw(10**6),
        2**60 + 4 * 10**7 + 1 + 2 * draw(10**6),
        INT64.stop - ids.ENDS - 1 - 2 * draw(10**4),
    ]
    exactly(api, orders, wanted)


@requirement("LIST-8", chosen_ids=True, pending=1)
def test_ids_below_zero(api: Api, orders: Orders) -> None:
    """Has orders placed with ids below zero, where the provider places such, and finds each to the digit."""
    draw = api.rng.randrange
    exactly(api, orders, [-draw(10**6, 10**7), -(2**32) - draw(10**6), -(2**53) - 10**7 - 1 - 2 * draw(10**6)])


@requirement("LIST-8", mode=Mode.FULL, chosen_ids=True)
def test_ids_that_a_double_cannot_tell_apart(api: Api, orders: Orders) -> None:
    """Has orders placed with ids above 2^53 of which two or three are the same double: each is in the listing. One that
    is not, while another is, and that can be cancelled, was taken for that one."""
    base = 2**53 + 4 * api.rng.randrange(10**6, 2 * 10**6)
    placed = orders.place(api.unmistakable([base - 1, base, base + 1])).pending
    if len(placed) < 3:
        raise outcomes.Excluded("an id to be chosen could be mistaken for that of an order in the listing")
    answer = api.list()
    found = verify.listing(answer)
    lost = [order for order in placed if order not in found.by_id]
    if not lost:
        return
    if len(lost) == len(placed) or len(lost) <= found.without_id:
        raise verify.not_shown(f"order {lost[0]} is not in the listing", found)
    control = api.cancel(lost[0])
    verify.step(control, 204, "CANCEL-1", "LIST-3")
    there = next(order for order in placed if order not in lost)
    raise outcomes.Failed(f"order {lost[0]} in the listing, beside order {there}", "only the latter", answer, control)


def exactly(api: Api, orders: Orders, wanted: list[int]) -> None:
    """Have orders with the `wanted` ids placed and demand them in the listing, if it shows an order with an ordinary
    id. That an id is lost is put down to its magnitude if there is another in its place that it may have turned into,
    or if all ids beyond some magnitude are lost."""
    orders.take_listed(pending=1)
    taken = api.listing().ids
    wanted = [order for order in wanted if order not in taken]
    placed = orders.place(wanted).pending
    answers = api.send_all([api.ask_list()] * 3)
    listings = [verify.listing(answer) for answer in answers]
    lost = [order for order in placed if not any(order in listing.by_id for listing in listings)]
    found, answer = listings[0], answers[0]
    if lost:
        stand_ins = {order: stand_in(order, found.ids - taken - set(placed)) for order in lost}
        there = [order for order in lost if stand_ins[order] is not None]
        kept = [abs(order) for order in placed if order not in lost]
        beyond = len(lost) > 1 and all(abs(order) > max(kept, default=0) for order in lost)
        if there:
            order = there[0]
            raise outcomes.Failed(f"order {order} with exactly this id", f"{stand_ins[order]} in its place", answer)
        if len(lost) <= found.without_id:
            raise verify.without_ids(found)
        if not beyond:
            raise verify.not_shown(f"order {lost[0]} is not in the listing, for no reason that its id shows", found)
        raise outcomes.Failed(
            f"order {lost[0]} in the listing", f"no order with an id as far from zero as {min(lost, key=abs)}", answer
        )
    exact_pets(placed, found, answer)


def exact_pets(placed: list[int], found: Listing, answer: Answer) -> None:
    """Demand that no petId of the orders `placed` has lost digits. Some providers give an order with a large id a petId
    equal to that. Where all ids from 2^31 to 2^53 show that this one does, and no id beyond is there as petId, the
    nearest double in its place has lost digits; elsewhere it may be the number of some other pet."""
    numbers = {order: integer(found.by_id[order].get("petId")) for order in placed if order in found.by_id}
    pets = {order: pet for order, pet in numbers.items() if pet is not None and abs(order) > 2**31}
    held = [order for order in pets if abs(order) <= 2**53]
    copied = [order for order, pet in pets.items() if pet == order]
    if not held or copied != held:
        return
    for order, pet in pets.items():
        if pet != order and pet in _rounded(order):
            raise outcomes.Failed(
                f"petId {order} to the digit, as the id of this order, since order {held[0]} has its id as petId, too",
                f"{pet} in its place",
                answer,
            )


def stand_in(order: int, others: frozenset[int]) -> int | None:
    """An id in `others` that `order` turns into on the way through a double, 32 bits, 53 bits or no sign."""
    bits = order % 2**32
    digits = str(abs(order))
    candidates = {
        -order,
        bits,
        bits - 2**32,
        order % 2**31,
        *(min(max(order, -limit), limit - 1) for limit in (2**31, 2**53, 2**63)),
        *(min(max(order, 1 - limit), limit) for limit in (2**31 - 1, 2**32 - 1, 2**53 - 1, 2**53, 2**63 - 1)),
        *((-1 if order < 0 else 1) * int(digits[:kept].ljust(len(digits), "0")) for kept in (15, 16, 17)),
    }
    near = (other for other in others if other in candidates or _same_double(other, order))
    return next(near, None)


def _rounded(order: int) -> set[int]:
    """What becomes of `order` on the way through a double: that number, and what its shortest notation comes to."""
    return {int(float(order)), int(Decimal(repr(float(order))))}


def _same_double(number: int, order: int) -> bool:
    """Whether both are the same double. Listings may hold numbers that no double holds."""
    return abs(number) <= INT64.stop and float(number) == float(order)
