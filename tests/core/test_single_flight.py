"""Callers of the same key share one run, in real threads."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from hermes_core.single_flight import SingleFlight


class Work:
    """Work that waits for a signal and counts its runs."""

    def __init__(self, error=None):
        self.error = error
        self.runs = 0
        self.started = threading.Event()
        self.go = threading.Event()

    def __call__(self):
        self.runs += 1
        self.started.set()
        assert self.go.wait(10)
        if self.error:
            raise self.error
        return object()


def together(flights, work, callers=8):
    """Start one caller, let the others arrive while it runs, then let it finish."""
    pool = ThreadPoolExecutor(callers)
    futures = [pool.submit(flights.run, "k", work)]
    assert work.started.wait(10)
    futures += [pool.submit(flights.run, "k", work) for _ in range(callers - 1)]
    time.sleep(0.1)
    work.go.set()
    return futures


def test_concurrent_callers_share_one_result():
    work = Work()
    results = {id(future.result(10)) for future in together(SingleFlight(), work)}
    assert (len(results), work.runs) == (1, 1)


def test_concurrent_callers_share_one_error():
    work = Work(error=OSError("disk"))
    errors = {id(future.exception(10)) for future in together(SingleFlight(), work)}
    assert errors == {id(work.error)}
    assert work.runs == 1


def test_a_later_call_runs_again():
    flights = SingleFlight()
    assert [flights.run("k", iter([n]).__next__) for n in (1, 2)] == [1, 2]


def test_a_result_of_none_is_a_result():
    assert SingleFlight().run("k", lambda: None) is None


def test_an_error_is_not_remembered():
    flights = SingleFlight()
    with pytest.raises(ZeroDivisionError):
        flights.run("k", lambda: 1 / 0)
    assert flights.run("k", lambda: 5) == 5


def test_different_keys_do_not_wait_for_each_other():
    flights, work = SingleFlight(), Work()
    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(flights.run, "slow", work)
        assert work.started.wait(10)
        assert flights.run("fast", lambda: 1) == 1
        work.go.set()
        slow.result(10)


def test_work_that_waits_for_itself_is_an_error_and_no_deadlock():
    flights = SingleFlight()
    with pytest.raises(RuntimeError, match="waits for itself"):
        flights.run("k", lambda: flights.run("k", lambda: 1))


def test_when_the_runner_is_told_to_quit_a_waiting_caller_takes_over():
    flights = SingleFlight()
    first = Work(error=SystemExit())
    waiting = threading.Event()

    def run_until_told_to_quit():
        with pytest.raises(SystemExit):
            flights.run("k", first)

    quitter = threading.Thread(target=run_until_told_to_quit)
    quitter.start()
    assert first.started.wait(10)

    def wait_then_work():
        waiting.set()
        return flights.run("k", lambda: "done")

    with ThreadPoolExecutor(1) as pool:
        follower = pool.submit(wait_then_work)
        assert waiting.wait(10)
        time.sleep(0.05)
        first.go.set()
        assert follower.result(10) == "done"
    quitter.join(10)


def test_under_load_no_two_runs_of_a_key_overlap():
    flights: SingleFlight[int, int] = SingleFlight()
    inside = [0] * 4
    overlaps = []

    def work(key):
        inside[key] += 1
        if inside[key] > 1:
            overlaps.append(key)
        time.sleep(0.0005)
        inside[key] -= 1
        return key

    with ThreadPoolExecutor(16) as pool:
        results = list(pool.map(lambda n: flights.run(n % 4, lambda: work(n % 4)), range(2000)))
    assert overlaps == []
    assert results == [n % 4 for n in range(2000)]
