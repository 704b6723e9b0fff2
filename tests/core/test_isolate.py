"""A failing step is reported and does not stop the others."""

from __future__ import annotations

import logging

import pytest

from hermes_core.isolate import Failure, Step, attempt, run_all


def fail():
    raise KeyError("lost")


def test_a_result_is_returned():
    assert attempt("fine", lambda: 5) == 5


def test_a_failure_names_its_step_and_keeps_the_error():
    failure = attempt("save", fail)
    assert isinstance(failure, Failure)
    assert failure.step == "save"
    assert isinstance(failure.error, KeyError)


def test_every_step_runs_after_failures_of_others():
    ran = []
    steps = [
        Step("one", lambda: ran.append(1)),
        Step("two", fail),
        Step("three", lambda: ran.append(3)),
        Step("four", fail),
    ]
    assert [failure.step for failure in run_all(steps)] == ["two", "four"]
    assert ran == [1, 3]


def test_a_failure_is_logged_with_its_traceback(caplog):
    with caplog.at_level(logging.WARNING):
        attempt("save messages", fail)
    (record,) = caplog.records
    assert "save messages failed" in record.getMessage()
    assert record.exc_info[0] is KeyError


@pytest.mark.parametrize("order", [KeyboardInterrupt, SystemExit])
def test_exceptions_that_end_the_program_are_not_caught(order):
    ran = []

    def quit_now():
        raise order

    with pytest.raises(order):
        run_all([Step("quit", quit_now), Step("later", lambda: ran.append(1))])
    assert ran == []
