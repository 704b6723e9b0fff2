"""Reconnect delays of a platform."""

from __future__ import annotations

from gateway.platforms.reconnect import REFUSED_DELAY_FACTOR, STABLE_SECONDS, ReconnectDelay
from hermes_core.backoff import Backoff


class Clock:
    """Time that a test lets pass."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_backoff_grows_with_each_failure_and_resets_after_a_success() -> None:
    delay = ReconnectDelay(Backoff(1.0, 4.0))
    assert [delay.next_delay() for _ in range(4)] == [1.0, 2.0, 4.0, 4.0]
    delay.reset()
    assert delay.next_delay() == 1.0
    assert delay.next_delay(is_refused=True) == 4.0 * REFUSED_DELAY_FACTOR


def test_a_connection_counts_as_a_success_only_when_it_has_lasted() -> None:
    clock = Clock()
    delay = ReconnectDelay(Backoff(1.0, 4.0), clock)
    results = []
    for lasted in (0.0, 1.0, STABLE_SECONDS, 0.0):
        delay.connected()
        clock.now += lasted
        results.append(delay.next_delay())
    assert results == [1.0, 2.0, 1.0, 2.0]
