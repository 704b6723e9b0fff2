"""Exponential backoff."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from hermes_core.backoff import Backoff


def test_delays_double_up_to_the_maximum() -> None:
    backoff = Backoff(2.0, 10.0)
    assert [backoff.delay(failures) for failures in (1, 2, 3, 4, 1000)] == [
        2.0,
        4.0,
        8.0,
        10.0,
        10.0,
    ]


def test_no_failure_waits_as_long_as_the_first() -> None:
    assert Backoff(2.0, 10.0).delay(0) == 2.0


@given(
    first=st.floats(0.001, 60.0),
    factor=st.floats(1.0, 10.0),
    failures=st.integers(0, 10**6),
    seed=st.integers(),
)
def test_a_delay_never_exceeds_the_maximum_and_never_shrinks(
    first: float, factor: float, failures: int, seed: int
) -> None:
    backoff = Backoff(first, 600.0, factor)
    delay = backoff.delay(failures)
    assert backoff.delay(failures) <= backoff.delay(failures + 1) <= 600.0
    assert delay / 2 <= backoff.jittered(failures, random.Random(seed)) <= delay
