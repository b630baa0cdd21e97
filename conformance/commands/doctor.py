"""`doctor`: examines a target before a run. Says what a run needs and lacks, and how to fix it."""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

from rich.text import Text

from conformance.check import Needs, exclusion
from conformance.configuration import settings
from conformance.configuration.targets import adjusted, resolve
from conformance.console.terminal import Console
from conformance.contract.listing import Listing
from conformance.contract.transitions import State
from conformance.runner import preflight
from conformance.runner.reference import ReferenceServer
from conformance.runner.session import Session
from conformance.states.leases import Leases
from conformance.states.provider import CannotDo, Provider, ProviderAbsent, ProviderError, empty
from conformance.target import Mode, States, Target
from conformance.text import cut, plural, visible
from conformance.transport.answer import Answer
from conformance.transport.connecting import to_host_of
from conformance.transport.endpoint import ServiceGone, tls_settings
from conformance.transport.error_messages import NO_CERTIFICATE
from conformance.transport.evidence import Trouble
from conformance.transport.request import NOBODY, Allowed
from conformance.transport.retries import GATEWAY
from conformance.verdict import Exit

OK, NOTE, FAIL = "ok", "note", "fail"
#: Stands in place of a check for what is sent from here.
DOCTOR = "doctor"
Finding = tuple[str, str]
#: Ids of which one shows whether a provider can choose ids; above 2^53, so that it also shows whether they stay exact.
CHOSEN = range(2**53 + 3, 2**53 + 2_000, 2)
#: The most characters shown of the names in a certificate: some have hundreds of names.
NAMES = 300
#: OpenSSL's X509_V_FLAG_NO_CHECK_TIME, for which Python has no name.
NO_CHECK_TIME = 0x200000


def examine(targets: tuple[str, ...], values: dict[str, Any]) -> int:
    """Examine one target and print the findings; return 0, or 2 if something must be fixed. Raises ConfigError."""
    chosen = settings.read(targets, values)
    (target,) = resolve(chosen.targets, chosen.options, looking=True)
    if target is not None:
        return _report(target, f"the key is in {target.key_file or f'${target.shell.key}'}")
    server = ReferenceServer()
    try:
        return _report(adjusted(server.address.target(), chosen.options), "the suite makes up a key for its own server")
    finally:
        server.stop()


def _report(target: Target, key: str) -> int:
    """Print the findings about a target, first where the `key` comes from; returns the exit status."""
    console = Console(highlight=False)
    unless = f" (full where a run has --confirm-cancel {target.name})" if target.unconfirmed else ""
    session = Session(target, seed=0)
    where = session.recorder.redactor.clean(target.base_url)
    console.print(f"{target.name}: {where}, mode {target.mode}{unless}", markup=False, soft_wrap=True)
    wrong = 0
    try:
        for level, text in chain([(OK, f"configuration: {key}")], findings(session)):  # each as soon as it is found
            style = {OK: "green", NOTE: "yellow", FAIL: "bold red"}[level]
            line = Text.assemble("  ", (f"{level:6}", style), visible(session.recorder.redactor.clean(text)))
            console.print(line, soft_wrap=True)
            wrong += level == FAIL
    finally:
        session.close()
    ready = f"ready for a run{f' with --confirm-cancel {target.name}' if target.unconfirmed else ''}"
    console.print(f"{plural(wrong, 'problem')} to fix" if wrong else ready, style="bold", markup=False)
    return Exit.USAGE if wrong else 0


def findings(session: Session) -> Iterator[Finding]:
    """The findings, step by step; ends early if the rest would be pointless."""
    endpoint = session.endpoint
    route = _route(session)
    yield route
    if route[0] == FAIL:
        return
    session.recorder.check = DOCTOR
    api = session.api(DOCTOR)
    answer = api.list()
    if (trouble := _trouble(session, answer)) is not None:
        yield FAIL, trouble
        return
    yield OK, f"connection: {endpoint.authority} answers over {'TLS' if endpoint.scheme == 'https' else 'plain HTTP'}"
    reason = preflight.probe_service(session)
    if reason:
        yield FAIL, reason
        return
    yield from ((NOTE, f"configuration: {said}") for said in preflight.shortcomings(session))
    if answer.status in GATEWAY:  # as the first one often is for which a gateway opens a connection
        answer = api.list()
    key = _key(answer)
    yield key
    if key[0] == FAIL:
        return
    stranger = api.list(NOBODY)
    if stranger.status == 401:
        yield OK, "key: required (401 without it)"
    else:
        yield NOTE, f"key: a listing without it answers {stranger.exchange.received}; a run will say more"
    yield from _raw_connections(session)
    try:
        for level, text in _states(session):
            yield level, f"state provider: {text}"
    except ServiceGone as error:
        yield FAIL, f"connection: {endpoint.authority} stopped answering: {error}; try again later"
    except ProviderAbsent as error:  # it would be absent whatever else it is asked
        yield FAIL, f"state provider: {error}"


def _raw_connections(session: Session) -> Iterator[Finding]:
    """That a proxy lets no raw connections through, if so."""
    if session.target.proxy is None:
        return
    with session.wire.connect() as connection:
        raw = connection.exchange(session.api(DOCTOR).ask_list(), last=True).exchange
    if raw.trouble == Trouble.NO_RAW:
        what = "what takes raw connections (kept-alive ones, bytes behind a 204) is excluded"
        yield NOTE, f"connection: {raw.detail}; {what}"


def _key(answer: Answer) -> Finding:
    """What the answer to a listing with the key says about the key, or about what is wrong before the key matters."""
    received = answer.exchange.received
    if answer.status == 200 and answer.listing is not None:
        return OK, f"key: accepted; the listing holds {plural(len(answer.listing.elements), 'order')}"
    if answer.status == 200:
        return NOTE, "key: accepted, but the answer is no listing that can be read; a run will say more"
    if answer.status in GATEWAY:
        return FAIL, f"connection: what is in front of the service answers {received}; try again later"
    if answer.status == 404:
        return FAIL, f"base URL: the listing answers {received}; check the path of base_url"
    return (
        FAIL,
        f"key: the listing answers {received}; check base_url and the key; where they are right, a run says more",
    )


def _route(session: Session) -> Finding:
    """Whether the service can be reached: its proxy accepts connections, or its name has an address."""
    target, endpoint = session.target, session.endpoint
    if target.proxy is not None:
        try:
            to_host_of(target.proxy, target.timeout).close()
        except OSError as error:
            return FAIL, f"proxy: {target.proxy} cannot be reached ({error}); check proxy"
        return OK, f"proxy: {target.proxy} takes connections"
    try:
        addresses = sorted({str(info[4][0]) for info in socket.getaddrinfo(endpoint.host, endpoint.port)})
    except OSError as error:
        return FAIL, f"DNS: {endpoint.host} has no address ({error}); check base_url"
    if addresses == [endpoint.host]:
        return OK, f"address: {endpoint.host}"
    return OK, f"DNS: {endpoint.host} is {', '.join(addresses)}"


def _trouble(session: Session, answer: Answer) -> str | None:
    """Why a listing got no HTTP answer, and what to do about it; None if it got one."""
    target, detail = session.target, answer.exchange.detail
    # To plain HTTP, a proxy would answer itself where it cannot reach the service.
    unclear = (
        answer.status is None and preflight.VERIFY_FAILED not in detail and (target.proxy is None or "SSL" in detail)
    )
    if unclear and preflight.speaks(session, "http"):
        return "TLS: this port speaks plain HTTP: is it http:// in base_url?"
    if answer.exchange.trouble == Trouble.UNREACHABLE:
        if preflight.VERIFY_FAILED in detail:
            return f"TLS: {detail}; {_remedy(session, detail)}"
        if NO_CERTIFICATE in detail:
            return f"TLS: {detail}"
        if "SSL" in detail:
            return f"TLS: {detail}; check base_url, and client_cert if the service asks for one"
        return f"connection: {detail}; check base_url{' and' if target.proxy else ', network and'} proxy"
    if answer.status is not None:
        return None
    return f"connection: {preflight.foreign(session) or preflight.unheard(session, answer)}"


def _remedy(session: Session, detail: str) -> str:
    """What to do about a certificate that was refused."""
    shown, host = _certificate(session), session.endpoint.host
    if "expired" in detail or "not yet valid" in detail:
        ended = shown.get("notAfter") if "expired" in detail else None
        since = f"since {ended}: " if ended and ssl.cert_time_to_seconds(ended) < time.time() else ""
        return f"{since}the service needs another certificate, unless the clock of this machine is wrong"
    if "is not valid for" in detail:
        names = visible(cut(", ".join(str(name) for _, name in shown.get("subjectAltName", ())), NAMES))
        other = f"it is for {names}; " if names else ""
        return f"{other}check the host in base_url, or have the certificate made out to {host}, too"
    given = session.target.ca_bundle
    return f"its authority is not in the ca_bundle given, {given}" if given else "give its authority with ca_bundle"


def _certificate(session: Session) -> dict[str, Any]:
    """The certificate of the service, as `getpeercert` gives it, whatever its dates and names are; empty if it cannot
    be read, because its authority is not trusted, say."""
    if session.target.proxy is not None:
        return {}
    context = tls_settings(session.target)
    context.check_hostname = False
    context.verify_flags |= NO_CHECK_TIME
    try:
        with (
            to_host_of(session.target.base_url, session.target.timeout) as connection,
            context.wrap_socket(connection, server_hostname=session.endpoint.host) as secure,
        ):
            return dict(secure.getpeercert() or {})
    except OSError:
        return {}


def _states(session: Session) -> Iterator[Finding]:
    """Findings about where orders come from, which is nowhere, lists or a provider; what they are about is left for the
    caller to say. Raises ProviderAbsent and ServiceGone."""
    states = session.target.states
    if states is None:
        yield NOTE, "none, so no order can be cancelled; checks that need one are excluded"
    elif states.static:
        yield from _lists(session, states)
    elif session.provider is not None:
        yield from _provider(session, session.provider)


def _lists(session: Session, states: States) -> Iterator[Finding]:
    """Whether the orders in the lists of the configuration are in the listing."""
    listed = _listed(session)
    for state, ids in ((State.PENDING, states.pending), (State.SHIPPED, states.shipped)):
        if missing := _missing(listed, ids):
            yield FAIL, f"{state} orders {missing} are not in the listing; take them out of the list"
        else:
            yield OK, plural(len(ids), f"static {state} order")


def _provider(session: Session, provider: Provider) -> Iterator[Finding]:
    """How a provider answers each kind of message that a run would send."""
    before = frozenset(session.guard.listed)  # later it also holds what these messages have placed
    for state in (State.PENDING, State.SHIPPED):
        yield from _message(session, provider, state)
    if (reason := exclusion(Needs(Mode.FULL, chosen_ids=True), session.target)) is not None:
        yield OK, f"pending orders, chosen id: not asked for, since {reason}"
    else:
        yield from _ids(session, provider, before)
    if (reason := exclusion(Needs(empty_store=True), session.target)) is not None:
        yield OK, f"no orders: not asked for, since {reason}"
        return
    try:
        empty(provider)
    except CannotDo:
        yield NOTE, "cannot do this: no orders; LIST-7 is excluded"
    except ProviderError as error:
        yield FAIL, f"no orders: {error}"
    else:
        yield from _emptied(session)


def _listed(session: Session) -> Listing | None:
    """The current listing; None if there is no readable one."""
    return session.api(DOCTOR).list().listing


def _missing(listed: Listing | None, ids: Iterable[int]) -> list[int]:
    """Those of `ids` that the listing leaves out; none if there is no listing."""
    return [] if listed is None else listed.left_out(ids)


def _emptied(session: Session) -> Iterator[Finding]:
    """Whether the store is empty, as the provider claims."""
    listed = _listed(session)
    if listed is not None and listed.elements:
        count = plural(len(listed.elements), "order")
        said = "placed by others, or the provider has not emptied the store; LIST-7 could not be decided"
        yield NOTE, f"no orders: {count} listed afterwards, {said}"
    else:
        yield OK, "no orders"


def _ids(session: Session, provider: Provider, listed: frozenset[int]) -> Iterator[Finding]:
    """How the store gives ids, and whether one can be chosen; `listed` were there before any was asked for."""
    # Placing the id of an order that is there would replace it.
    chosen = next((order for order in CHOSEN if session.guard.permits(str(order))), None)
    preflight.probe_provider(session, listed)  # what is wrong with it was said before
    yield from ((FAIL, said) for said in session.warnings)
    yield from ((NOTE, said) for said in preflight.remarks(session))
    if session.counts_on:
        yield NOTE, f"{preflight.COUNTS_ON}; checks that need chosen ids would be excluded"
    elif chosen is None:
        yield NOTE, "pending orders, chosen id: not asked for, since any could be the id of an order that is there"
    else:
        for state in (State.PENDING, State.SHIPPED):
            yield from _message(session, provider, state, chosen)


def _in_another_state(session: Session, state: State, order: int) -> str | None:
    """What to say if the cancel of an order is answered as if it were in another state than it was placed in; None if
    it is not, or if the mode forbids trying."""
    if session.target.mode is not Mode.FULL:
        return None
    status, requirement = (204, "CANCEL-1") if state is State.PENDING else (409, "CANCEL-3")
    answer = session.api(DOCTOR).cancel(order, allowed=Allowed.ANY_4XX)
    if answer.status is None or answer.status == status:
        return None
    return (
        f"cancelling one was answered {answer.status}, where a {state} order gets {status}: has the provider placed it "
        f"in another state? Else {requirement} will fail"
    )


def _message(session: Session, provider: Provider, state: State, chosen: int | None = None) -> Iterator[Finding]:
    """Set a state up, with the id `chosen` if given, find its orders in the listing, cancel one if that is allowed,
    tear the state down, and check that the orders are gone. Raises ProviderAbsent and ServiceGone."""
    name = f"{state} orders, {'any ids' if chosen is None else 'chosen id'}"
    held = Leases(provider, session.guard)
    listed: Listing | None = None
    left_behind: list[str] = []
    try:
        ids = held.take(state, 2) if chosen is None else held.place(state, [chosen])
        listed = _listed(session)
        missing = _missing(listed, ids)
        late = bool(missing) and preflight.is_listed_soon(session.api(DOCTOR), ids[0])
        other = _in_another_state(session, state, ids[0]) if chosen is None else None
    except CannotDo:
        excluded = f"every check that needs {state} orders" if chosen is None else "checks that need chosen ids"
        yield NOTE, f"cannot do this: {name}; {excluded} would be excluded"
        return
    except ProviderAbsent:
        raise
    except ProviderError as error:
        yield FAIL, f"{name}: {error}"
        return
    finally:
        held.give_back(left_behind)
    if late:
        yield FAIL, f"{name}: handed out {missing}, which the listing shows only now; let it answer once they are there"
        return
    if missing:
        yield FAIL, f"{name}: handed out {missing}, which the listing does not show"
        return
    if left_behind:
        yield from ((FAIL, said) for said in left_behind)
        return
    if listed is None:
        yield NOTE, f"{name}: handed out {ids}; no listing can be read that would show them"
        return
    yield OK, name
    if other is not None:
        yield NOTE, f"{name}: {other}"
    left = _listed(session)
    leaked = [number for number in ids if left is not None and number in left.by_id]
    if leaked:
        yield NOTE, f"{name}: {leaked} are still listed after teardown; each run leaves orders behind"
