"""`selftest`: proves that each check can fail, and that none fails a correct service.

The whole suite judges every fault and every correct variant of the reference server. A fault is caught only if the
requirement that it breaks failed. A variant is left alone only if everything was decided, and nothing failed but the
recommended requirements that it is known not to follow (`detection.Judged.good`).
"""

from __future__ import annotations

import difflib
import gc
import json
import multiprocessing
import os
import random
import signal
import string
import threading
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from conformance import plugin
from conformance.check import all_checks
from conformance.configuration import settings
from conformance.configuration.settings import Settings
from conformance.console import progress
from conformance.console.terminal import Console
from conformance.contract import catalogue
from conformance.judging import judges
from conformance.reporting import detection, detection_views
from conformance.reporting.detection import Case, Judged
from conformance.reporting.files import make_folder, replace
from conformance.reporting.run import Run
from conformance.runner import embedding
from conformance.runner.direct import DirectSession
from conformance.runner.process import Process, Shared
from conformance.runner.session import Session
from conformance.signals import ENDING, held_back, ignore_ending_signals
from conformance.target import UNNAMED, ConfigError, Mode, Secret, States, Target
from conformance.verdict import EVERY_EXCHANGE, Exit, Status
from reference_server.api import Service
from reference_server.faults import FAULTS
from reference_server.running import Running, build
from reference_server.variants import VARIANTS

#: All variants have begun by this part of the queue.
EARLIER = 0.9
#: How a check ends that does not pass what it was to decide.
STOPPED = frozenset({Status.FAILED, Status.INCONCLUSIVE})


def cases() -> list[Case]:
    """Every fault and every variant of the reference server."""
    order = list(catalogue.load().requirements)
    faults = sorted(FAULTS.values(), key=lambda fault: order.index(fault.requirement))
    return [Case(fault.name, fault.requirement, fault.description) for fault in faults] + [
        Case(variant.name, None, variant.description, variant.leaves) for variant in VARIANTS.values()
    ]


class _Collector(Process):
    """A process for which checks are collected, and that begins nothing."""

    def __init__(self) -> None:
        super().__init__(settings.read((UNNAMED,), {}), Shared(0), {UNNAMED: None}, {})

    def begin(self) -> None:
        pass

    def conclude(self, *, cut_short: bool) -> None:
        pass


class _TakesOverLoop:
    """Does `work` with the collected checks, in place of pytest's own loop over them."""

    def __init__(self, work: Callable[[pytest.Session], None]) -> None:
        self._work = work
        self.error: BaseException | None = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        try:
            self._work(session)
        except BaseException as error:  # pytest would make an exit status of it
            self.error = error
        return True


def collected(work: Callable[[pytest.Session], None]) -> None:
    """Collect the checks and do `work` with the session that holds them. Raises what `work` raises."""
    bench = _TakesOverLoop(work)
    embedding.main(["--capture=no"], [plugin.ForProcess(_Collector()), bench, embedding.Quiet()])
    if bench.error is not None:
        raise bench.error


class _Judging(Process):
    """A process whose target is a service of its own."""

    def __init__(self, chosen: Settings, target: Target, service: Service) -> None:
        super().__init__(chosen, Shared(chosen.seed), {target.name: target}, {})
        self._target = target
        self._service = service

    def session(self, name: str) -> Session:
        if name not in self.sessions:
            self.sessions[name] = DirectSession(
                self._target, self.settings.seed, selected=self.settings.selected, service=self._service
            )
        return self.sessions[name]


def run_on(session: pytest.Session, chosen: Settings, target: Target, service: Service) -> tuple[Run, Exit]:
    """A run of the checks that `session` has collected against `service`, in this process, and its exit status. Only
    raw connections go to the address of the `target`."""
    own = _Judging(chosen, target, service)
    plugin.run_collected(session, own)
    (run,) = own.runs
    assert own.exit is not None  # it goes with the run
    return run, own.exit


def _run_on_new(session: pytest.Session, case: Case | None, seed: int, budget: str) -> tuple[Run, Exit]:
    """A run of the whole suite, as collected in `session`, in this process, against a new service: `case`, or the
    correct one."""
    name = case.name if case else "correct"
    letters = random.Random(f"{seed}:{name}").choices(string.ascii_letters + string.digits + "-_", k=28)
    key = f"sk_{''.join(letters[:14])}.{''.join(letters[14:])}"  # a prefix and a dot: there are near misses for both
    faults = [name] if case and case.requirement else []
    variants = [name] if case and not case.requirement else []
    service = build(key.encode(), faults=faults, variants=variants)
    with Running(service) as server:
        chosen = settings.read((UNNAMED,), {"seed": seed, "budget": budget})
        target = Target(UNNAMED, server.base_url, Secret(key), Mode.FULL, states=States(url=server.base_url))
        return run_on(session, chosen, target, service)


def judge(session: pytest.Session, case: Case, seed: int, budget: str) -> Judged:
    """Run the whole suite, as collected in `session`, against `case` in this process."""
    started = time.monotonic()
    run, status = _run_on_new(session, case, seed, budget)
    ended = by_status(run)
    own = [row for row in run.requirements if row.requirement.id == case.requirement]
    failed = [check for row in own for check in row.checks if check.status is Status.FAILED]
    stopped = [check for row in run.requirements for check in row.checks if check.status in STOPPED]
    return Judged(
        case,
        failed=ended[Status.FAILED],
        inconclusive=ended[Status.INCONCLUSIVE],
        exit_status=int(status),
        seconds=round(time.monotonic() - started, 2),
        requests=run.requests,
        messages={row.requirement.id: row.reason for row in run.requirements if row.reason},
        checks=tuple(_named(check.id, check.requirement) for check in failed),
        stopped={_named(check.id, check.requirement): check.message for check in stopped if check not in failed},
    )


def sent_to_correct(session: pytest.Session, seed: int, budget: str) -> dict[str, list[int]]:
    """What each check, as collected in `session`, sends to the correct server."""
    run, _ = _run_on_new(session, None, seed, budget)
    checks = {check.id for check in all_checks()}
    return detection_views.sent_by(exchange for exchange in run.exchanges if exchange.check in checks)


def by_status(run: Run) -> dict[Status, tuple[str, ...]]:
    """The ids of the requirements of a run, by the status in which they ended."""
    return {status: tuple(row.requirement.id for row in run.requirements if row.status is status) for status in Status}


def _named(check: str, requirement: str) -> str:
    """The name of a check in proofs: its id; for the judges of every exchange, together with the requirement."""
    return f"{check} for {requirement}" if check == EVERY_EXCHANGE else check


def every_check() -> tuple[str, ...]:
    """The names of all checks of requirements that a server can break."""
    own = [check.id for check in all_checks() if check.requirement not in detection.NO_FAULT]
    return (*own, *(_named(EVERY_EXCHANGE, requirement) for requirement in judges.JUDGES))


def proofs() -> detection.Proofs:
    """The recorded proofs: those that every seed gives, compiled from the `proofs.json` of several selftests."""
    return _on_record("proofs.json")


def stops() -> detection.Stops:
    """The recorded stops: those that every seed gives, compiled from the `stops.json` of several selftests."""
    return _on_record("stops.json")


def due() -> detection.Sent:
    """What each check is known to send to the correct server, compiled from the `sent.json` of several selftests."""
    return _on_record("sent.json")


def _on_record(name: str) -> dict[str, Any]:
    """What a file of the package has on record for each check."""
    return dict(json.loads((files("conformance") / name).read_text(encoding="utf-8")))


_collected: pytest.Session  # in a worker: what its parent has collected


def _begin_work(session: pytest.Session) -> None:
    """Prepare a worker. Its garbage collector ignores what was there before, and runs less often: it took a tenth of
    the time."""
    global _collected
    _collected = session
    ignore_ending_signals()  # the command ends its workers
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    gc.freeze()
    gc.set_threshold(400_000)


def _end_with_parent() -> None:
    """End this worker when its parent has ended without ending it, because that was killed, say. It would wait for
    ever, since it holds both ends of the queue that it takes work from."""
    parent = multiprocessing.parent_process()
    assert parent is not None, "only workers come here"
    parent.join()
    os._exit(1)


def _work(case: Case, seed: int, budget: str) -> Judged:
    return judge(_collected, case, seed, budget)


def _send(seed: int, budget: str) -> dict[str, list[int]]:
    return sent_to_correct(_collected, seed, budget)


def spread(chosen: list[Case]) -> list[Case]:
    """`chosen`, with the variants spread among the faults, and none among the last of them: some variants take long,
    and if such a case came last, everybody would wait for it."""
    variants = [case for case in chosen if case.requirement is None]
    faults = [case for case in chosen if case.requirement is not None]
    places = {case: number / len(kind) for kind in (variants, faults) for number, case in enumerate(kind)}
    return sorted(chosen, key=lambda case: places[case] * (1.0 if case.requirement else EARLIER))


def judge_all(
    chosen: list[Case], seed: int, budget: str, workers: int, done: Callable[[Judged], None]
) -> dict[str, list[int]]:
    """Judge `chosen` in parallel, and call `done` with each; gives what the checks send to the correct server. The
    workers are forked when everything is imported and the checks are collected."""
    ordered = spread(chosen)
    sent: dict[str, list[int]] = {}

    def share(session: pytest.Session) -> None:
        fork = multiprocessing.get_context("fork")
        with ProcessPoolExecutor(workers, mp_context=fork, initializer=_begin_work, initargs=(session,)) as pool:
            try:
                with held_back():
                    sending = pool.submit(_send, seed, budget)
                    judging = [pool.submit(_work, case, seed, budget) for case in ordered]
                for judged in as_completed(judging):
                    done(judged.result())
                sent.update(sending.result())
            except BaseException:
                for worker in multiprocessing.active_children():  # nobody waits for the cases under way
                    worker.kill()
                raise
            finally:
                pool.shutdown(cancel_futures=True)

    collected(share)
    return sent


def run(names: tuple[str, ...], seed: int, budget: str, workers: int, folder: Path) -> int:
    """Judge the cases that `names` select (faults, variants, requirements, families; all if there are none), print and
    write the matrix, and return 0 if everything is as it should be, else 1. Raises ConfigError."""
    everything = cases()
    chosen = [case for case in everything if not names or case.matches(names)]
    unknown = [name for name in names if not any(case.matches((name,)) for case in everything)]
    if unknown and unknown[0].upper() in detection.NO_FAULT:
        raise ConfigError(f"no fault breaks {unknown[0].upper()}: {detection.NO_FAULT[unknown[0].upper()]}")
    if unknown:
        close = difflib.get_close_matches(unknown[0].lower(), [case.name for case in everything], 1, 0.7)
        hint = f"did you mean {close[0]}?" if close else "`faults` lists them"
        raise ConfigError(f"{unknown[0]!r} is not a fault, variant, requirement or family; {hint}")
    if not 1 <= workers <= settings.MOST_WORKERS:
        raise ConfigError(f"-n {workers}: a number of workers from 1 to {settings.MOST_WORKERS}")
    make_folder(folder)
    console = Console(highlight=False)
    started = time.monotonic()
    found: dict[Case, Judged] = {}
    with progress.bar(len(chosen)) as advance:

        def note(judged: Judged) -> None:
            found[judged.case] = judged
            advance(judged.case.requirement or "variants")
            if not judged.good:
                progress.line(detection_views.complaint(judged))

        sent = judge_all(chosen, seed, budget, workers, note)
    ordered = [found[case] for case in chosen]
    seconds = round(time.monotonic() - started, 1)
    whole = detection.Matrix(
        ordered,
        seconds,
        complete=not names,
        proofs=proofs(),
        checks=every_check(),
        sent=sent,
        due=due(),
        stops=stops(),
    )
    console.print(detection_views.text(whole), markup=False, soft_wrap=True)
    for name, render in detection_views.WRITERS.items():
        replace(folder / name, render(whole).encode())
    console.print(f"Written to {folder}", markup=False, style="dim", soft_wrap=True)
    return 0 if whole.good else 1
