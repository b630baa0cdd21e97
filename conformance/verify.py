"""What checks demand of an answer.

A check uses `status`, `meets` and the like for its own subject: what is not met fails it. It uses `step` for everything
that it only relies on, and names the requirement that owns the step. Each raises one of the `outcomes`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from conformance.contract.catalogue import load
from conformance.contract.listing import Listing, alike, changes
from conformance.outcomes import Excluded, Failed, Inconclusive
from conformance.transport.answer import Answer
from conformance.transport.evidence import Trouble
from conformance.transport.request import STATUSES, Allowed, Operation, with_fields
from conformance.transport.retries import GATEWAY, retry_after

#: Advice where a service has limits; the specification does not show any (section 8).
FEWER = "--rate-limit and -n 1 keep a run below a limit"
#: Content Too Large, URI Too Long, Request Header Fields Too Large.
TOO_LONG = frozenset({413, 414, 431})
#: How the names of header fields begin that tell what a client is and accepts.
CLIENT_FIELDS = ("accept", "user-agent")


def settled(answer: Answer) -> Answer:
    """`answer`, if it decides anything. Raises Inconclusive if there is no answer, or one that proves nothing; and
    Excluded if raw connections to the service are impossible."""
    exchange = answer.exchange
    if exchange.trouble == Trouble.NO_RAW:
        raise Excluded(f"this takes raw connections, in HTTP/1.1, and {exchange.detail}")
    if exchange.trouble == Trouble.BROKEN:
        owners = ["HTTP-2"] if exchange.findings.get("HTTP-2") else []  # which leaves some of them open
        raise Inconclusive(f"{exchange.line} got no complete HTTP response: {exchange.detail}", *owners)
    if exchange.trouble == Trouble.DROPPED:
        raise Inconclusive(f"{exchange.line} got no answer among other requests: {exchange.detail}; {FEWER}")
    if answer.status is None:
        advice = f"; {FEWER}" if exchange.crowded and exchange.trouble == Trouble.TIMEOUT else ""
        raise Inconclusive(f"{exchange.line} got {exchange.instead}: {exchange.detail}{advice}")
    if answer.status in GATEWAY:
        advice = f"; {FEWER}" if answer.status == 503 else ""
        raise Inconclusive(f"{exchange.in_words}, which proves neither way{advice}", "HTTP-1")
    if answer.status == 429:
        why = "again and again"
        if (delay := retry_after(answer)) is not None:
            why = f"and to wait {delay:g} s more is too long, for one request or in all"
        raise Inconclusive(f"{exchange.line} answered 429, {why}; {FEWER}", "HTTP-1")
    return answer


def served(answers: Sequence[Answer]) -> None:
    """Check answers to requests for which any status is allowed. Raises Inconclusive for a 429, since a rate limit
    withheld the answer; and, if none of the answers is a 200, for one that proves nothing. Next to a 200 such an answer
    is ignored: a firewall may drop some requests."""
    some = any(answer.status == 200 for answer in answers)
    for answer in answers:
        if answer.status == 429 or not some:
            settled(answer)


def overlapped(answers: Iterable[Answer]) -> None:
    """Raise Excluded unless some of the requests with these answers may have been under way at the same time."""
    if not any(answer.exchange.crowded for answer in answers):
        raise Excluded("this service is sent one request at a time, as it takes no more, so none could overlap")


def status(answer: Answer, *expected: int, since: str, after: Sequence[Answer] = ()) -> None:
    """Demand one of the `expected` statuses; `since` is the reason in the contract, for the message. If the status may
    be a consequence of earlier requests, it came `after` their answers, which a failure shows as the steps to it."""
    settled(answer)
    if answer.status in expected:
        return
    if answer.status == 401 and answer.request.credential.valid:
        raise Inconclusive(f"{answer.exchange.line} answered 401 to the valid key", "AUTH-1")
    not_sporadic(answer, *expected)
    if _minds_the_client(answer):
        raise _minded(answer)
    wanted = " or ".join(map(str, expected))
    raise Failed(f"{wanted}, since {since}", describe(answer), *after, answer, last=bool(after))


def _minds_the_client(answer: Answer) -> bool:
    """Whether an unlisted status is a matter of how this client asks, and so of HTTP-1: any to a request without
    Accept, and a failure of the service or 406 to one with fields of another client. What else a service has to do is
    decided by plain requests."""
    request = answer.request
    if request.accept is None:
        return unlisted(answer)
    told = any(name.lower().startswith(CLIENT_FIELDS) for name, _ in request.headers)
    return told and unlisted(answer) and (answer.status == 406 or (answer.status or 0) >= 500)


def _minded(answer: Answer) -> Inconclusive:
    return Inconclusive(f"{answer.exchange.line} answered {answer.exchange.received}{asked_with(answer)}", "HTTP-1")


def not_sporadic(answer: Answer, *expected: int) -> None:
    """Raise Inconclusive if an unlisted status, a redirect or a 5xx becomes an `expected` status when the request is
    repeated: what happens only now and then is a matter of HTTP-1."""
    # No operation lists a redirect or a 5xx, whatever else is open about the request.
    if not unlisted(answer) and (answer.status or 0) // 100 not in (3, 5):
        return
    for _ in range(2):
        again = answer.repeat().status
        if again in expected:
            raise Inconclusive(f"{answer.exchange.in_words}, and {again} when asked again", "HTTP-1")


def unlisted(answer: Answer) -> bool:
    """Whether the operation does not list this status (HTTP-1)."""
    return answer.exchange.findings.get("HTTP-1") is not None


def step(answer: Answer, expected: int, *owners: str) -> None:
    """Demand the `expected` status of a step that the check only uses. `owners` are the requirements of which one owns
    any other status that the operation lists."""
    if settled(answer).status == expected:
        return
    if answer.status == 401 and answer.request.credential.valid:
        owners = ("AUTH-1",)
    elif unlisted(answer):
        owners = ("HTTP-1",)
    raise Inconclusive(f"{answer.exchange.in_words} where the check needed {expected}", *owners)


def turned_down(answer: Answer) -> bool:
    """Whether this is a client error that the operation does not list, as services give for what a request has beyond
    the contract. Raises like `settled`: a 429 is about nothing in the request."""
    return settled(answer).client_error and answer.status not in STATUSES.get(answer.request.operation, ())


def refusal(answer: Answer) -> bool:
    """Whether a request was refused for its credential, which is any of these. Raises like `settled`.

    any credential              401
    one malformed, or long      400, 413, 414 and 431, too (RFC 6750 section 3.1; RFC 9110 section 15.5; RFC 6585
                                section 5)
    in the query or the body    any 4xx that the operation does not list, too, since it defines nothing there
    long, or in the body        a connection closed before the answer, too
    """
    who = answer.request.credential
    if (who.long or who.body) and answer.exchange.trouble == Trouble.BROKEN:
        return True
    settled(answer)
    return (
        answer.status == 401
        or (answer.status in (400, *TOO_LONG) and (who.malformed or who.long))
        or (who.undefined and turned_down(answer))
    )


def refused(answers: Sequence[Answer], *, since: str, after: Answer | None = None) -> None:
    """Demand a `refusal` of every request. The message counts the other answers and names the first few, successes
    first. `after`, if given, is the previous answer on the same connection."""
    wrong = sorted((answer for answer in answers if not refusal(answer)), key=lambda answer: not answer.succeeded)
    if not wrong:
        return
    not_sporadic(wrong[0], 401)
    if all(map(_minds_the_client, wrong)):
        raise _minded(wrong[0])
    wrong = [answer for answer in wrong if not _minds_the_client(answer)]
    credential = wrong[0].request.credential
    if credential.allows is Allowed.LISTED:
        wanted = "401"
    elif credential.undefined:
        wanted = "401 or a client error that is not listed"
    else:
        wanted = "401 or 400"
    told = list(dict.fromkeys(f"{a.exchange.received} with {a.exchange.credential}{asked_with(a)}" for a in wrong))
    received = "; ".join(told[:4])
    if len(told) > 4:
        received += f"; and {len(told) - 4} more"
    if len(answers) > 1:
        were = "was" if len(wrong) == 1 else "were"
        received = f"{len(wrong)} of {len(answers)} requests {were} not answered so: {received}"
    if after is not None:
        raise Failed(f"{wanted}, since {since}", received, after, wrong[0], last=True, kept=True)
    raise Failed(f"{wanted}, since {since}", received, *wrong[:4])


def meets(requirement: str, *answers: Answer) -> None:
    """Demand that each of `answers` meets a requirement that the judges check on every exchange of the run."""
    for answer in answers:
        settled(answer)
        findings, undecided = answer.exchange.findings, answer.exchange.undecided
        if requirement not in findings:
            if requirement in undecided:
                raise Inconclusive(undecided[requirement])
            raise Inconclusive(f"{answer.exchange.in_words}, on which this cannot be judged", "HTTP-1")
        problem = findings[requirement]
        if problem is not None:
            raise Failed(load().requirements[requirement].expected_of_each_answer, problem, answer)


def listing(answer: Answer) -> Listing:
    """The listing in an answer that the check only uses. Raises Inconclusive if it is not readable."""
    step(answer, 200, "LIST-1")
    found = answer.listing
    if found is None:
        raise Inconclusive(f"{answer.exchange.line} gave no readable listing", "LIST-1")
    return found


def without_ids(found: Listing, *, before: str = "", after: str = "") -> Inconclusive:
    """What to raise if elements of a listing have no usable id, so that any of them may be the order in question.
    `before` and `after` are put around the sentence that counts them."""
    count = found.odd_ids or found.without_id
    have = "element of the listing has" if count == 1 else "elements of the listing have"
    what = "an id that is no integer" if found.odd_ids else "no id"
    return Inconclusive(f"{before}{count} {have} {what}{after}", *(["LIST-2"] if found.odd_ids else []))


def not_shown(reason: str, found: Listing) -> Inconclusive:
    """What to raise if the listing `found` does not show an order that the check needs: `reason`, unless the listing
    has ids that are not integers."""
    return without_ids(found) if found.odd_ids else Inconclusive(reason, "LIST-3")


def unknown(order: int) -> Inconclusive:
    """What to raise if neither the listing nor cancelling knows an order that the provider handed out: it may not
    exist."""
    return Inconclusive(
        f"neither the listing nor cancelling knows order {order}, which the state provider handed out: does it place "
        "orders in the store of this service?"
    )


def perhaps_used(order: int, answer: Answer) -> Inconclusive:
    """What to raise if the cancel of an order from a hand-written list is answered as if the order were absent, or in
    another state than the list says."""
    return Inconclusive(
        f"cancelling order {order} of the lists in the configuration was answered {answer.exchange.received}: are the "
        "lists right, and is this their first run? Each id serves one"
    )


def unchanged(
    pending: Iterable[int],
    before: Listing,
    after: Answer,
    *,
    shipped: Sequence[int] = (),
    later: bool = False,
    since: str,
    shown_by: Sequence[Answer] = (),
) -> None:
    """Demand that each of these orders is listed in `after` as in `before`. Raises Failed and Inconclusive.

    Orders in `shipped` must keep their date. They must also keep `complete`, unless `after` is much `later`, or the
    orders were placed a while ago. No field is required, so an element without an id may be any order: an order that
    `before` may show without an id is skipped. An order that only one of several listings lacks is a matter of LIST-3.
    `shown_by` are the answers that came in between; a failure shows those to cancels of the order itself, or all if
    there are none.
    """
    found = listing(after)
    orders = [*pending, *shipped]
    gone = [order for order in orders if order not in found.by_id]
    for order in orders:
        if order not in before.by_id:
            if before.odd_ids or before.left_out(orders):
                raise not_shown(f"order {order} was not in the listing to begin with", before)
            continue
        if order in gone:
            if len(gone) <= found.without_id:
                raise without_ids(found, before=f"order {order} is not listed by id any more, but ")
            again = after.repeat().listing
            if again is not None and order in again.by_id:
                raise Inconclusive(f"order {order} was left out of one listing, and is in the next", "LIST-3")
            now = "it is no longer in the listing"
        else:
            elements = found.by_id[order], before.by_id[order]
            actual, since_long = order in shipped, later or order in after.aged
            if alike(*elements, shipped=actual, later=since_long):
                continue
            now = changes(*elements, shipped=actual, later=since_long)
        own = [answer for answer in shown_by if answer.request.order_id == str(order)]
        raise Failed(f"order {order} listed as before, since {since}", now, *(own or shown_by), after)


def still_pending(
    cancelled: Answer, control: Answer, *, since: str, shown_by: Sequence[Answer], certain: bool = False
) -> None:
    """Demand that an order was still pending when it was cancelled with the key just now.

    `control` is the same cancel of another pending order, to which nothing was done. If that did not succeed either,
    cancelling itself is broken, and the check cannot tell. Send it second: a service that mistakes one order for
    another might otherwise cancel the order in question. `certain` is as in `Failed`.
    """
    if settled(cancelled).status == 204:
        return
    step(control, 204, "CANCEL-1")
    if cancelled.status == 401 or unlisted(cancelled):  # that is not how a service says that an order is not pending
        step(cancelled, 204, "AUTH-1")  # or HTTP-1, which owns what is unlisted
    if cancelled.status in (404, 409) and cancelled.repeat().status == 204:
        raise Inconclusive(
            f"order {cancelled.exchange.order_id} was cancelled only when it was asked for again", "CANCEL-1"
        )
    raise Failed(
        f"204 when the order is cancelled with the key, since it must still be pending: {since}",
        f"{describe(cancelled)}, while another pending order could be cancelled",
        *shown_by,
        cancelled,
        certain=certain,
    )


def still_shipped(cancelled: Answer, control: Callable[[], Answer], *, since: str, shown_by: Sequence[Answer]) -> None:
    """Demand that an order was still shipped when it was cancelled with the key just now.

    `control` cancels another shipped order, to which nothing was done. It is called only if this cancel was not
    refused, and then tells whether shipped orders are refused at all.
    """
    if settled(cancelled).status not in (204, 404):
        step(cancelled, 409, "CANCEL-3")
        return
    step(control(), 409, "CANCEL-3")
    raise Failed(
        f"409 when the order is cancelled with the key, since it must still be shipped: {since}",
        f"{describe(cancelled)}, while another shipped order is refused",
        *shown_by,
        cancelled,
    )


def describe(answer: Answer) -> str:
    """An answer in a few words, for the "received" of a failure."""
    segment = answer.request.path.removeprefix("/store/orders/")  # as it was sent: decoded, it may be no text
    order = f"order {segment}" if re.fullmatch("-?[0-9]+", segment) else f"the id {segment}"
    what = {Operation.LIST: "the listing", Operation.CANCEL: order}
    about = what.get(answer.request.operation)
    return f"{answer.exchange.received}{f' for {about}' if about else ''}{asked_with(answer)}"


def asked_with(answer: Answer) -> str:
    """The further header fields of a request, for "received", since the answer may depend on them. Those of the
    credential are left out: its label stands for them."""
    request = answer.request
    silent = ", asked without Accept" if request.accept is None else ""
    return silent + with_fields(() if request.credential.body else request.headers)
