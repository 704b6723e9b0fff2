"""Error handling of the command line."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from support.command_line import Hermes


def test_an_unknown_command_is_a_usage_error(hermes: Hermes) -> None:
    result = hermes("sesions")
    assert result.code == 2
    assert "sessions" in result.err


def test_a_number_that_is_too_large_is_a_usage_error(hermes: Hermes, history: Path) -> None:
    for command in (("search", "hello"), ("sessions", "list"), ("fixes", "hello")):
        for number in ("9" * 20, "9" * 5000):
            result = hermes(*command, "--limit", number)
            assert result.code == 2
            assert "at most 18 digits" in result.err
        assert hermes(*command, "--limit", "9" * 18).code in {0, 1}, command
    assert history.exists()


def test_a_file_that_is_not_a_database_is_rejected_in_one_line(
    hermes: Hermes, hermes_home: Path
) -> None:
    (hermes_home / "state.db").write_text("dear diary\n" * 1000)
    result = hermes("sessions", "list")
    assert result.code == 1
    assert result.err.startswith("hermes: ")
    assert "Traceback" not in result.err
    debug = hermes("sessions", "list", HERMES_DEBUG="1")
    assert "Traceback" in debug.err
    assert debug.code == 1


def test_doctor_reports_no_problem_with_a_healthy_history(hermes: Hermes, history: Path) -> None:
    result = hermes("doctor")
    assert result.code == 0, result.out
    report = json.loads(hermes("doctor", "--json").out)
    assert report["ok"] is True
    assert all(check["status"] in {"ok", "warning", "skipped"} for check in report["checks"])
    assert {"name", "status", "detail", "advice"} == set(report["checks"][0])
    assert history.exists()


def test_doctor_without_a_history(hermes: Hermes, hermes_home: Path) -> None:
    assert hermes("doctor").code == 0
    assert not (hermes_home / "state.db").exists()


def test_doctor_fails_on_a_damaged_file(hermes: Hermes, hermes_home: Path) -> None:
    (hermes_home / "state.db").write_text("dear diary\n" * 1000)
    result = hermes("doctor")
    assert result.code == 1
    assert "✗" in result.out
    report = json.loads(hermes("doctor", "--json").out)
    assert report["ok"] is False


def test_doctor_fails_on_settings_that_cannot_be_used(hermes: Hermes, hermes_home: Path) -> None:
    (hermes_home / "config.yaml").write_text("display:\n  color: sometimes\n")
    result = hermes("doctor")
    assert result.code == 1
    assert "display.color" in result.out
