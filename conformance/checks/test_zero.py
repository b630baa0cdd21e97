"""LIST, CANCEL: an order with the id 0, which many a language takes for none (specification, sections 2 and 4).

A pending one is for `test_cancelling`. One look at a shipped one serves both checks here: the first of them has it, and
its requests stand with that check. The other one looks for itself where something was wrong.
"""

from __future__ import annotations

import pytest

from conformance import verify
from conformance.api import Api, Orders
from conformance.check import requirement
from conformance.target import Mode
from conformance.transport.client import Answer
from conformance.transport.evidence import Allowed

#: What shares a look is for one process. Once an order 0 was listed, no id that could be taken for it is cancelled or
#: chosen in this process: that is for the last checks to meet.
pytestmark = [pytest.mark.xdist_group("zero"), pytest.mark.alone("late")]


@pytest.fixture(scope="session")
def refused(session: object) -> list[bool]:
    """Whether a look at the order has shown that it is refused, once there was one; `session` stands for the target."""
    return []


def look(api: Api, orders: Orders) -> tuple[Answer, Answer]:
    """The answers to a cancel of a shipped order with the id 0, and to a listing. Raises Excluded where there can be
    none: some databases number such an order themselves."""
    if any(order % 2**31 == 0 for order in api.listing().ids):
        raise verify.Excluded("an order in the listing could be mistaken for one with the id 0")
    orders.place([0], shipped=True, looked_for=False)
    cancel, listing = api.send_all([api.ask_cancel(0, allowed=Allowed.ANY_4XX), api.ask_list()])
    found = listing.listing
    if cancel.client_error and cancel.status != 409 and found is not None and 0 not in found.by_id:
        raise verify.Excluded("the listing shows no order with the id 0, although one was placed")
    return cancel, listing


@requirement("LIST-8", mode=Mode.FULL, chosen_ids=True)
def test_order_with_the_id_zero_is_listed(api: Api, orders: Orders, refused: list[bool]) -> None:
    """Has a shipped order placed with the id 0, where one can be: it is in the listing, if cancelling knows it."""
    cancel, answer = look(api, orders)
    refused.append(cancel.status == 409)
    found = verify.listing(answer)
    if 0 in found.by_id:
        return
    verify.step(cancel, 409, "CANCEL-3")
    if found.without_id:
        raise verify.Inconclusive(f"{found.without_id} elements of the listing have no id", "LIST-2")
    raise verify.Failed("order 0 in the listing", "no order with the id 0, which cancelling knows", answer, cancel)


@requirement("CANCEL-3", mode=Mode.FULL, chosen_ids=True)
def test_shipped_order_with_the_id_zero_is_refused(api: Api, orders: Orders, refused: list[bool]) -> None:
    """Cancels a shipped order with the id 0, where one can be placed: 409."""
    if not any(refused):
        cancel, _ = look(api, orders)
        verify.status(cancel, 409, since="the order has already shipped")
