"""Checks of kept-alive connections: what a service closes at will is held against nobody, and passes nothing either."""

from __future__ import annotations

import pytest
from built import LIST, session
from raw_service import Conversation, answer, serving

from conformance.checks.test_authentication import TRIES, in_turn
from conformance.transport.evidence import Trouble
from conformance.verify import Inconclusive

OK = answer("200 OK", b"[]")


def test_a_connection_closed_under_a_request_begins_all_anew() -> None:
    def closing_once(talk: Conversation) -> None:
        talk.send(OK) if talk.number != 1 else talk.hang_up()

    with serving(closing_once) as service, session(service.base_url) as opened:
        answers, kept = in_turn(opened.wire, [LIST] * 3)
        troubles = [exchange.trouble for exchange in opened.recorder.exchanges]
        assert troubles == [None, Trouble.CLOSED, None, None, None]
        assert [found.exchange for found in answers] == opened.recorder.exchanges[2:]
        assert kept
        assert service.connections == 2


def test_a_service_that_never_answers_twice_on_a_connection_decides_nothing() -> None:
    def closing(talk: Conversation) -> None:
        talk.hang_up() if talk.turn else talk.send(OK)

    with serving(closing) as service, session(service.base_url) as opened:
        with pytest.raises(Inconclusive, match="each of 4 connections was closed"):
            in_turn(opened.wire, [LIST] * 3)
        assert service.connections == TRIES


def test_a_service_that_closes_after_each_answer_is_followed() -> None:
    with serving(OK) as service, session(service.base_url) as opened:
        answers, kept = in_turn(opened.wire, [LIST] * 3)
        assert [found.status for found in answers] == [200] * 3
        assert not kept
        assert service.connections >= 3
