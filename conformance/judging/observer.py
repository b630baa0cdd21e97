"""Has every answer judged as it comes, and notes in its exchange what the judges and the doubts say."""

from __future__ import annotations

from collections.abc import Callable, Container
from functools import cache

from conformance.contract.jsontext import TooDeep
from conformance.judging.doubts import doubts
from conformance.judging.judges import ERRORS, JUDGES, NOT_APPLICABLE, Finding, is_listing, well_formed
from conformance.transport.answer import Answer
from conformance.transport.evidence import PREFLIGHT, Trouble
from conformance.transport.request import STATUSES, Allowed
from conformance.transport.retries import GATEWAY, turned_away

#: Judges of the whole body: identical bytes are judged once.
_BY_BODY = ("LIST-2", "LIST-4", "LIST-10", "LIST-11")
#: The statuses that a judge needs to see; for all others it would say NOT_APPLICABLE, so it is not asked. A judge that
#: is not listed here sees every answer, including incomplete ones.
_STATUSES: dict[str, Container[int | None]] = {
    **dict.fromkeys(("LIST-1", *_BY_BODY), (200,)),
    **dict.fromkeys(("CANCEL-2", "CANCEL-12"), (204,)),
    **dict.fromkeys(("ERR-1", "ERR-2", "ERR-3"), ERRORS),
    "AUTH-7": (401,),
    "ERR-4": range(400, 1000),
    "ERR-5": (409,),
}


@cache
def _asked(status: int | None) -> tuple[tuple[str, Callable[[Answer], Finding]], ...]:
    """The judges that need to see an answer with this status, with their requirements."""
    return tuple(
        (requirement, judge)
        for requirement, judge in JUDGES.items()
        if requirement not in _STATUSES or status in _STATUSES[requirement]
    )


class Judge:
    """Notes in each exchange what the judges find; the client calls it as its observer."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], Finding] = {}
        self._check = ""
        # Orders that a listing lacked in this check, though it should have shown them, each with when that had ended.
        self._missed: dict[int, float] = {}
        self._denied: set[str] = set()  # pending ones whose cancel was refused in this check

    def __call__(self, answer: Answer) -> None:
        exchange = answer.exchange
        for requirement, judge in _asked(answer.status):
            try:
                finding = self._finding(requirement, judge, answer)
            except TooDeep as error:
                exchange.undecided[requirement] = f"{exchange.in_words} with a body: {error}"
                continue
            if finding is not NOT_APPLICABLE:
                exchange.findings[requirement] = finding
        if answer.status in GATEWAY and well_formed(answer) and not turned_away(answer):
            exchange.undecided["HTTP-1"] = f"{exchange.in_words}, which proves neither way"
        if _never_answered(answer):
            exchange.undecided["HTTP-1"] = f"{exchange.line} got no answer: {exchange.detail}"
        self._doubt(answer)

    def _finding(self, requirement: str, judge: Callable[[Answer], Finding], answer: Answer) -> Finding:
        """What a judge finds, from memory where it has judged the same bytes before."""
        if requirement not in _BY_BODY or not is_listing(answer):
            return judge(answer)
        key = (requirement, answer.exchange.body_sha256)
        if key not in self._known:
            self._known[key] = judge(answer)
        return self._known[key]

    def _doubt(self, answer: Answer) -> None:
        exchange = answer.exchange
        if exchange.check != self._check:  # an audit plays checks again one by one
            self._check, self._missed, self._denied = exchange.check, {}, set()
        # Of two answers that were under way at once, the one that was read first may be the later one's.
        missed = [order for order, ended in self._missed.items() if ended <= exchange.started]
        for doubt in doubts(answer, missed, self._denied):
            exchange.undecided[doubt.requirement] = doubt.reason
            if doubt.proven:
                exchange.proven.append(doubt.requirement)
        if "LIST-3" in exchange.undecided:
            for order in answer.lacking:
                self._missed.setdefault(order, exchange.started + exchange.seconds)
        if "CANCEL-1" in exchange.undecided and answer.request.order_id is not None:
            self._denied.add(answer.request.order_id)


def _never_answered(answer: Answer) -> bool:
    """Whether a request that the contract describes got no answer in time, without an excuse: no other request was
    under way, and it was not one of the first, for which a service may have to wake up."""
    exchange, request = answer.exchange, answer.request
    described = request.operation in STATUSES and request.allowed is Allowed.LISTED
    alone = not exchange.crowded and exchange.check != PREFLIGHT
    return exchange.trouble == Trouble.TIMEOUT and described and alone
