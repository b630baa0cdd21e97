"""A look at the target before the first check: is there a service, does it take the key, is the provider alive.

No check runs here. What makes every check pointless is found in seconds and said once, instead of once per check.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator
from contextlib import suppress
from urllib.parse import urljoin, urlsplit, urlunsplit

from conformance.api import Api
from conformance.checks import credentials
from conformance.contract.jsontext import INT64
from conformance.contract.listing import Listing
from conformance.contract.transitions import State
from conformance.runner.session import Session
from conformance.states.leases import Leases
from conformance.states.provider import CannotDo, ProviderError
from conformance.target import Mode, States, Target
from conformance.transport.answer import Answer
from conformance.transport.endpoint import ServiceGone, host_and_port
from conformance.transport.evidence import PREFLIGHT, Trouble, first_field
from conformance.transport.guard import Refused
from conformance.transport.redaction import SECRET_PART
from conformance.transport.request import NOBODY, Allowed, Operation
from conformance.transport.retries import GATEWAY

#: How often the key is tried: a faulty service may refuse the right one (AUTH-1).
TRIES = 3
#: If the ids of two orders, placed one after the other, are no further apart than this, they come from a counter:
#: others may have placed orders in between. Ids made from the time are further apart, or soon exceed the leap below.
APART = 100
#: How far above the latest id one is chosen, to see whether later ids follow it. If they do not, and returned orders
#: keep their rows, a run that places more orders than this reaches the chosen id.
LEAP = 20_000
#: How a transport says that an answer is not HTTP, and how it quotes the beginning of a TLS alert.
NO_STATUS_LINE, TLS_ALERT = "the answer begins with no status line of HTTP", r"\x15\x03"
SPEAKS_TLS = "This port speaks TLS: is it https:// in base_url?"
#: How OpenSSL begins to say why it does not trust a certificate.
VERIFY_FAILED = "certificate verify failed"
USED_AGAIN = (
    "the service gives the ids of cancelled orders to new ones: checks run one at a time (in plain pytest, too, if -n "
    "is left out), since the id of an order that one of them has cancelled could belong to another check's order by "
    "then; a second cancel may also hit an order that somebody else has just placed, so make the run while nobody else "
    "works on that store"
)
FOLLOWS_LARGEST = (
    "the service gives a new order the id after the largest one, which may be one that the suite has chosen: checks "
    "run one at a time (in plain pytest, too, if -n is left out); orders that others place meanwhile would get such "
    "ids, up to the end of int64, so make the run while nobody else works on that store"
)
#: It does not say how long the key is: for so short a key, that would be half of what there is to guess.
SHORT_KEY = (
    f"the key has fewer than {SECRET_PART} characters: it is removed from the reports wherever it occurs, even by "
    "chance, and the gaps reveal it; use a longer key"
)
LISTED_BEFORE = (
    "the state provider hands out order {}, which was listed before it was asked for any: unless that order is meant "
    "to be cancelled, the provider works on the store of another service, and the run cancels somebody else's orders"
)
#: For how many seconds an order is looked for that was handed out and is not there, and how long from look to look.
LATE, LOOK = 1.0, 0.05
CAME_LATE = (
    "the state provider answers before its orders are there: order {} was neither listed nor found by a cancel after "
    "it was handed out, and was listed a moment later. Let the provider answer once the listing shows its orders; else "
    "the service would be blamed for them"
)
COUNTS_ON = "the store counts on from a chosen id, so large ones would use up its ids"


def probe_service(session: Session) -> str | None:
    """Why running the checks would be pointless, and what to do about it; None if it is not."""
    session.recorder.check = PREFLIGHT
    try:
        return _pointless(session)
    except ServiceGone as error:
        return f"{session.target.base_url} stopped answering before the first check: {error}. Try again later."


def _pointless(session: Session) -> str | None:
    api, target = session.api(PREFLIGHT), session.target
    answer = _first_listing(session)
    if (unusable := _unreachable(session, answer)) is not None:
        return unusable
    if answer.exchange.trouble == Trouble.BROKEN and (said := foreign(session)) is not None:
        return said
    if _is_mute(answer) and _is_mute(api.list(NOBODY)) and all(map(_is_mute, session.elsewhere())):
        return unheard(session, answer)
    if answer.listing is not None:
        session.warnings += _unlisted(answer.listing, target)
    if _is_sign(answer) and answer.status not in GATEWAY:
        return None
    stranger = api.list(NOBODY)
    if answer.status == 429 and stranger.status == 429:
        return f"{target.base_url} answers 429 to everything. Try again later, or ask less often (--rate-limit)."
    if answer.status in GATEWAY and stranger.status in GATEWAY:
        return f"{target.base_url} is behind something that cannot reach it (status {answer.status}). Try again later."
    if not _is_sign(answer) and not _is_sign(stranger) and not _is_elsewhere(session):
        return (
            f"{target.base_url} does not look like a Store Orders Service: GET {_path_of_listing(session)}"
            f" answers {_seen(answer)} with the key and {_seen(stranger)} without. Check base_url."
        )
    if answer.status == 404:
        said = f"GET {_path_of_listing(session)} answers 404 to the key: is the path of base_url right?"
        session.warnings.append(said)
    return None


def _path_of_listing(session: Session) -> str:
    return f"{session.endpoint.base_path}/store/orders"


def _first_listing(session: Session) -> Answer:
    """The answer to the first listing, which is asked for again where it may be a matter of chance."""
    api = session.api(PREFLIGHT)
    answer = api.list()
    for _ in range(TRIES - 1):
        # Over TLS, a demand for a certificate is lost if the service resets the connection right after making it.
        if answer.status != 401 and answer.exchange.trouble != Trouble.BROKEN:
            break
        answer = api.list()
    return api.list() if answer.exchange.trouble == Trouble.TIMEOUT else answer


def _unreachable(session: Session, answer: Answer) -> str | None:
    """What to say if the service cannot be reached, does not answer in time, or refuses the key everywhere."""
    target, detail = session.target, answer.exchange.detail
    if answer.exchange.trouble == Trouble.UNREACHABLE:
        hint = "Check base_url, network, proxy and certificates (--ca-bundle names an authority of your own)."
        return f"{target.base_url} cannot be reached: {detail}. {hint}"
    if answer.exchange.trouble == Trouble.TIMEOUT:
        return f"{target.base_url} does not answer: {detail}. Raise --timeout if it is merely slow."
    if answer.status == 401 and not _takes_key_otherwise(session):
        return (
            f"{target.base_url} refuses the API key (401 to GET {_path_of_listing(session)} with the key "
            f"in {target.key_file or f'${target.shell.key}'}). Check that the key belongs to this deployment, and "
            "that nothing in front of the service takes the Authorization header away, as Apache does from CGI."
        )
    return None


def _unlisted(listing: Listing, target: Target) -> Iterator[str]:
    """Which orders of the static lists are not in the listing of `target`."""
    states = target.states or States()
    for state, ids in ((State.PENDING, states.pending), (State.SHIPPED, states.shipped)):
        if missing := listing.left_out(ids):
            shown = f"{', '.join(map(str, missing[:5]))}{'…' if missing[5:] else ''}"
            yield f"the configuration has as {state} what the listing does not show: {shown}"


def shortcomings(session: Session) -> list[str]:
    """What in the target's configuration makes a result say less than it seems to."""
    target, found = session.target, []
    if target.protected_as and target.states is not None and target.mode < Mode.FULL:
        found.append(
            f"mode {target.mode}, though there is a state provider: the target has the address of "
            f"{target.protected_as!r}, which is protected"
        )
    if len(session.key) < SECRET_PART:
        found.append(SHORT_KEY)
    return found


def probe_provider(session: Session, listed: frozenset[int] | None = None) -> str | None:
    """What is wrong with the state provider, if anything: it is asked for one pending order, which is returned. If the
    run will cancel orders, a few more messages find out how the store gives ids, which is noted in the session.
    `listed` are the orders that were there before any was asked for; by default, those seen so far."""
    if session.provider is None:
        return None
    leases = session.leases(PREFLIGHT)
    listed = frozenset(session.guard.listed) if listed is None else listed
    said_before = len(session.warnings)
    try:
        (first,) = leases.take(State.PENDING, 1)
        session.listed_before = first if first in listed else None
    except (ProviderError, CannotDo) as error:
        return str(error)
    finally:
        leases.give_back(session.warnings)
    if session.target.mode is Mode.FULL and len(session.warnings) == said_before:  # else it takes nothing back
        with suppress(ProviderError, CannotDo, ServiceGone):  # the checks will meet these, and report them
            _probe_ids(session, leases, first, listed)
    return None


def _probe_ids(session: Session, leases: Leases, first: int, listed: Collection[int]) -> None:
    """Note whether orders come late, whether the store uses ids again, and whether new ids follow a chosen one. The
    order `first` has been returned; `listed` were there before. Raises ProviderError, CannotDo and ServiceGone."""
    needs = session.needs
    if not any(need.orders for need in needs):
        return
    try:
        (second,) = leases.take(State.PENDING, 1)
        if second in listed:
            session.listed_before = second
        if _comes_late(session, second):
            session.came_late = second
            return
        session.ids_used_again = second == first and _given_again(session, leases, second)
        counted = 0 <= second - first <= APART  # the same, where the first was removed
        if session.ids_used_again or not counted or not any(need.chosen_ids for need in needs):
            return
        permits = session.guard.permits
        above = range(second + LEAP, second + 2 * LEAP)
        # Placing the id of an order that is there would replace it.
        chosen = next((order for order in above if order + LEAP in INT64 and permits(str(order))), None)
        if chosen is None:
            return
        leases.place(State.PENDING, [chosen])
        (following,) = leases.take(State.PENDING, 1)
        leases.give_back(session.warnings)
        # Once the chosen order is gone, the largest id is what it was, and only a counter remembers.
        (third,) = leases.take(State.PENDING, 1)
        session.ids_used_again = third in (first, second) and _given_again(session, leases, third)
        session.counts_on = chosen < third <= chosen + LEAP
        session.follows_largest = chosen < following <= chosen + LEAP and not session.counts_on
    finally:
        leases.give_back(session.warnings)


def remarks(session: Session) -> Iterator[str]:
    """What a reader of the result should know about the store, judging by the orders that its provider handed out."""
    if session.listed_before is not None:
        yield LISTED_BEFORE.format(session.listed_before)
    if session.one_at_a_time:
        yield USED_AGAIN if session.ids_used_again else FOLLOWS_LARGEST


def _comes_late(session: Session, order: int) -> bool:
    """Whether an order, which was just handed out, is not there yet: neither the listing nor a cancel knows it, and a
    moment later the listing does. (What only the listing lacks is for LIST-3, and what only a cancel does not find for
    CANCEL-1.)"""
    api = session.api(PREFLIGHT)
    if not _lacks(api, order) or api.cancel(order, allowed=Allowed.ANY_4XX).status != 404:
        return False
    return is_listed_soon(api, order)


def is_listed_soon(api: Api, order: int) -> bool:
    """Whether an order that the listing lacked is in one of the next LATE seconds."""
    until = time.monotonic() + LATE
    while time.monotonic() < until:
        time.sleep(LOOK)
        if not _lacks(api, order):
            return True
    return False


def _lacks(api: Api, order: int) -> bool:
    """Whether a readable listing is without an order."""
    found = api.list().listing
    return found is not None and bool(found.left_out([order]))


def _given_again(session: Session, leases: Leases, order: int) -> bool:
    """Whether the store gives the id of a cancelled order to a new one. The suite still holds `order` when it asks for
    another: a provider with a few orders, which hands out again what was returned to it, does not do so here. Raises
    ProviderError and CannotDo."""
    api = session.api(PREFLIGHT)
    answer = api.cancel(order)
    if answer.status == 404 and (listing := api.list().listing) is not None and order not in listing.by_id:
        return False  # there is no such order: the provider makes them up, or the listing lacks it (LIST-3)
    if answer.status != 204:
        return True  # nobody can tell
    return leases.take(State.PENDING, 1) == [order]


def _takes_key_otherwise(session: Session) -> bool:
    """Whether the key is right although listing refuses it: listing accepts it in another place, or cancelling does
    (AUTH-1)."""
    api = session.api(PREFLIGHT)
    elsewhere = [*credentials.misplaced(session.key, proxied=True), *credentials.in_query(session.key)]
    if any(answer.status == 200 for answer in api.send_all(map(api.ask_list, elsewhere))):
        return True
    if session.target.mode is not Mode.FULL:
        return False
    leases = session.leases(PREFLIGHT)
    try:
        (order,) = leases.take(State.PENDING, 1)
        return api.cancel(order).status not in (None, 401, 403)
    except (ProviderError, CannotDo, Refused):
        return False
    finally:
        leases.give_back(session.warnings)


def foreign(session: Session) -> str | None:
    """What to say if the address speaks something other than HTTP, such as the banner of another protocol; None if an
    answer looks like HTTP, or like a listing. The key is not sent."""
    with session.wire.connect() as connection:
        detail = connection.exchange(session.api(PREFLIGHT).ask_list(NOBODY), last=True).exchange.detail
    _, found, begins = detail.partition(NO_STATUS_LINE)
    if not found or begins.lstrip(": '\"").startswith(("HTTP", "[", "{")):
        return None
    hint = SPEAKS_TLS if TLS_ALERT in begins else "Check base_url."
    return f"{session.target.base_url} does not speak HTTP: {detail}. {hint}"


def unheard(session: Session, answer: Answer) -> str:
    """What to say about a target that gives no HTTP answer."""
    hint = SPEAKS_TLS if speaks(session, "https") else "Check base_url, or whether the service is running."
    return f"{session.target.base_url} gives no HTTP answer: {answer.exchange.detail}. {hint}"


def speaks(session: Session, scheme: str) -> bool:
    """Whether there is an answer if the base URL has this scheme instead of its own. The key is not sent."""
    if session.endpoint.scheme == scheme:
        return False
    parts = urlsplit(session.target.base_url)
    authority = host_and_port(session.endpoint.host, session.endpoint.port)
    answer = session.listing_at(urlunsplit(parts._replace(scheme=scheme, netloc=authority)), NOBODY)
    return answer.status is not None or VERIFY_FAILED in answer.exchange.detail


def _is_mute(answer: Answer) -> bool:
    """Whether there was a connection, but nothing that looks like HTTP."""
    return answer.exchange.trouble == Trouble.BROKEN and not answer.exchange.http_version


def _is_sign(answer: Answer) -> bool:
    """Whether an answer could come from a Store Orders Service, however faulty: anything but a page, a redirect (except
    to the same path with a slash behind it, which some frameworks ask for) or a plain "not found"."""
    if answer.exchange.trouble in (Trouble.BROKEN, Trouble.TOO_LARGE):
        return True
    if answer.request.operation is Operation.LIST and answer.status == 200:
        return answer.body.strip()[:1] in (b"[", b"{") or "json" in answer.media_type
    if answer.status in (401, 403) or _adds_a_slash(answer):
        return True
    return answer.status is not None and answer.status >= 500


def _adds_a_slash(answer: Answer) -> bool:
    """Whether an answer redirects to the same address with a slash behind it."""
    location = first_field(answer.exchange.headers, "location")
    with suppress(ValueError):  # of what is no URL
        return urljoin(answer.exchange.url, location) == f"{answer.exchange.url}/"
    return False


def _is_elsewhere(session: Session) -> bool:
    """Whether the listing answers next to the base URL, which BASE-1 is about."""
    return any(answer.listing is not None and answer.status == 200 for answer in session.elsewhere())


def _seen(answer: Answer) -> str:
    kind = f" ({answer.media_type})" if answer.media_type else ""
    return f"{answer.exchange.received}{kind}"
