"""LIST-1 to LIST-4, LIST-9 to LIST-11: every order, as it is, in a JSON array."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest

from conformance import outcomes, verify
from conformance.api import Api, Orders
from conformance.check import requirement
from conformance.checks.clients import BROWSER, NAMES_JSON_LAST, NAMES_OTHERS, OTHER_TEXT, PLAIN, SCRIPT
from conformance.checks.listing.steps import none_missing, still_there
from conformance.contract import dates
from conformance.contract.listing import Listing
from conformance.contract.transitions import State
from conformance.target import Mode, Target
from conformance.transport.answer import Answer
from conformance.transport.request import Allowed, Request
from conformance.transport.wire import Wire

#: Languages whose digits, decimals, letters and times get into JSON where a service formats by that of who asks.
LANGUAGES = ("ar", "de", "fi", "tr")
#: In so few listings dates may all differ without reading being the reason.
FEW_DATES = 3


def listed(answer: Answer) -> Listing:
    """The listing in the answer that a check is about: 200 with an array."""
    verify.status(answer, 200, since="the key is valid and the listing takes no parameters")
    verify.meets("LIST-1", answer)
    found = answer.listing
    assert found is not None, "what meets LIST-1 is readable"
    return found


def judged(api: Api, row: str) -> None:
    """List, and demand that the listing meets a requirement that is judged on every listing of the run. Raises Excluded
    where it holds nothing."""
    answer = api.list()
    if not verify.listing(answer).elements:
        raise outcomes.Excluded("the listing holds no order")
    verify.meets(row, answer)


# --- LIST-1, LIST-2, LIST-4: what a listing is. These are judged on every listing of the run, too.


@requirement("LIST-1")
def test_listing_is_a_json_array(api: Api) -> None:
    """Lists, with several spellings of Accept, a browser's and its scripts' among them, and for readers of several
    languages: 200, application/json, one JSON text, an array. To a client that accepts XML and CSV only, or names an
    encoding with Accept-Charset, a client error will do."""
    accepted = ("application/json", "application/json, */*;q=0.1", "application/*")
    headers = [
        (),
        *((("Accept", accept),) for accept in accepted),
        BROWSER,
        SCRIPT,
        NAMES_JSON_LAST,
        *((("Accept-Language", language),) for language in LANGUAGES),
    ]
    for answer in api.send_all(api.ask_list(headers=each) for each in headers):
        listed(answer)
    others = [api.ask_list(headers=each, allowed=Allowed.ANY_4XX) for each in (NAMES_OTHERS, OTHER_TEXT)]
    for answer in api.send_all(others):
        if not verify.settled(answer).client_error:
            listed(answer)


@requirement("LIST-2")
def test_elements_are_orders(api: Api, orders: Orders) -> None:
    """Judges every element of the listing, pending and shipped orders of the suite among them where it can have some
    placed: an object whose listed fields have the listed type and format."""
    orders.add(pending=2, shipped=2)
    judged(api, "LIST-2")


@requirement("LIST-4")
def test_ids_are_unique(api: Api, orders: Orders) -> None:
    """Looks for an id that two elements of the listing carry, pending and shipped orders of the suite among them where
    it can have some placed."""
    orders.add(pending=2, shipped=2)
    judged(api, "LIST-4")


# --- LIST-3: every order


@requirement("LIST-3", pending=12, shipped=4)
def test_orders_placed_are_listed(api: Api, orders: Orders, wire: Wire, target: Target) -> None:
    """Lists, also as a client that takes nothing compressed, as a browser and its scripts, and with Host, User-Agent
    and Authorization alone, has orders placed in both states, and lists so again and again: each is there, at once and
    every time."""
    kinds = [api.ask_list(headers=each) for each in (PLAIN, BROWSER, SCRIPT)]

    def listings() -> list[Answer]:
        with wire.connect() as connection:
            bare = connection.exchange(api.ask_list(), minimal=True)
        answers = api.send_all([api.ask_list(), *kinds, api.ask_list()])
        return [*answers, bare] if bare.listing is not None and bare.status == 200 else answers

    listings()
    taken = orders.take(pending=12, shipped=4)
    for answer in listings():
        none_missing(api, taken.pending, State.PENDING, answer, target)
        none_missing(api, taken.shipped, State.SHIPPED, answer, target)


@requirement("LIST-3", mode=Mode.FULL, pending=3, shipped=1)
def test_orders_are_listed_after_another_was_cancelled(api: Api, orders: Orders) -> None:
    """Cancels one order between two listings: the others are still there."""
    taken = orders.take_listed(pending=3, shipped=1)
    verify.step(api.cancel(taken.pending[1]), 204, "CANCEL-1")
    answer = api.list()
    rest = [taken.pending[0], taken.pending[2], *taken.shipped]
    gone = verify.listing(answer).left_out(rest)
    if gone:
        probe = still_there(api, gone[0], taken.shipped, "CANCEL-8")
        raise outcomes.Failed(
            "every order placed and not cancelled", f"no order {gone[0]} in the listing", answer, probe
        )


@requirement("LIST-3", mode=Mode.FULL, empty_store=True, pending=1, shipped=1)
@pytest.mark.xdist_group("empty store")
@pytest.mark.alone
@pytest.mark.last
def test_only_order_is_listed(api: Api, orders: Orders, target: Target, already_met: bool) -> None:
    """Has the store emptied and one order placed, which is the first and the last: it is listed, and so is a shipped
    one when that is cancelled. The check of LIST-7 may have seen that already."""
    if not already_met:
        orders.empty_store()
        only = orders.take(pending=1).pending
        none_missing(api, only, State.PENDING, api.list(), target)
        behind = orders.take(shipped=1).shipped
        verify.step(api.cancel(only[0]), 204, "CANCEL-1")
        none_missing(api, behind, State.SHIPPED, api.list(), target)


# --- LIST-9: reading changes nothing


@requirement("LIST-9", mode=Mode.FULL, pending=2, shipped=2)
@pytest.mark.lengthy
def test_reading_changes_nothing(api: Api, orders: Orders, crowded: bool) -> None:
    """Lists many times, and asks for the pending order by its own address with GET, HEAD and OPTIONS, whatever that
    answers. The orders of the suite stay as they are: the shipped one is still refused, and the pending one can still
    be cancelled, as another can that was placed after the reading. The expected ship date of a pending order may move,
    but not on and on with each reading, one after the other, so that hardly two listings agree on it while no other
    check cancels orders."""
    taken = orders.take_listed(pending=1, shipped=1)
    if taken.listing is None:
        raise outcomes.Inconclusive("there is no readable listing", "LIST-1")
    answers = [api.list() for _ in range(6)]
    *_, before, last = answers  # shown both: it may take two
    verify.unchanged(taken.pending, taken.listing, last, shipped=taken.shipped, since="it was only read")
    readings = [found for answer in answers if (found := answer.listing) is not None]
    order = f"/store/orders/{taken.pending[0]}"
    read = api.send_all(Request(method, order, api.key, allowed=Allowed.OPEN) for method in ("GET", "HEAD", "OPTIONS"))
    cancelled = api.cancel(taken.pending[0])  # first: until then there was nothing but reading
    refusal = api.cancel(taken.shipped[0])
    unread = orders.take(pending=1, shipped=1)
    since, shown_by = "it was only read", [before, last]
    verify.still_pending(cancelled, api.cancel(unread.pending[0]), since=since, shown_by=[*shown_by, *read])
    verify.still_shipped(refusal, lambda: api.cancel(unread.shipped[0]), since=since, shown_by=shown_by)
    steady_date(taken.pending[0], [taken.listing, *readings], answers, crowded=crowded)


def steady_date(order: int, readings: Sequence[Listing], answers: Sequence[Answer], *, crowded: bool) -> None:
    """Demand that reading does not move the ship date of a pending order: that most of the readings agree on it, or
    that it goes back and forth, as where each part of a service reckons for itself. What becomes of other orders may
    move it, where it is reckoned from how many wait before it: so only readings that show the same orders are compared,
    the most that do. While other checks run (`crowded`), hardly any do: then it takes no more than that most readings
    disagree for the date to be looked at again when those are done."""
    same = Counter(found.ids for found in readings).most_common(1)[0][0]
    alike = [found for found in readings if crowded or found.ids == same]
    elements = [found.by_id.get(order) for found in alike]
    shown = [element["shipDate"] for element in elements if isinstance(element, dict) and "shipDate" in element]
    agreeing = max((sum(dates.close(one, other) for other in shown) for one in shown), default=0)
    if len(shown) <= FEW_DATES or agreeing > len(shown) // 2:
        return
    if crowded:
        raise outcomes.Disturbed(f"the ship date of order {order} moved from listing to listing")
    if dates.one_way(shown):
        raise outcomes.Failed(
            f"the same ship date of order {order} in most listings, since it was only read",
            f"no more than {agreeing} of {len(shown)} listings that agree on it",
            *answers[-2:],
        )


# --- LIST-10, LIST-11: recommended ways to write things. Judged on every listing of the run, too.


@requirement("LIST-10")
def test_dates_are_rfc3339(api: Api, orders: Orders) -> None:
    """Looks at every shipDate, those of pending orders of the suite among them where it can have some placed: RFC 3339,
    not another form of ISO 8601."""
    orders.add(pending=2)
    judged(api, "LIST-10")


@requirement("LIST-11")
def test_integers_and_names_are_plain(api: Api, orders: Orders) -> None:
    """Looks at how integers are written, and for names that an object repeats, in pending orders of the suite, too,
    where it can have some placed."""
    orders.add(pending=2)
    judged(api, "LIST-11")
