"""Error handling of the command line."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from support.command_line import Hermes


def test_an_unknown_command_is_a_usage_error(hermes: Hermes) -> None:
    done = hermes("sesions")
    assert done.code == 2
    assert "sessions" in done.err


def test_a_file_that_is_no_database_is_refused_in_one_line(
    hermes: Hermes, hermes_home: Path
) -> None:
    (hermes_home / "state.db").write_text("dear diary\n" * 1000)
    done = hermes("sessions", "list")
    assert done.code == 1
    assert done.err.startswith("hermes: ")
    assert "Traceback" not in done.err
    debug = hermes("sessions", "list", HERMES_DEBUG="1")
    assert "Traceback" in debug.err
    assert debug.code == 1


def test_doctor_is_content_with_a_sound_history(hermes: Hermes, history: Path) -> None:
    done = hermes("doctor")
    assert done.code == 0, done.out
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
    done = hermes("doctor")
    assert done.code == 1
    assert "✗" in done.out
    report = json.loads(hermes("doctor", "--json").out)
    assert report["ok"] is False


def test_doctor_fails_on_settings_that_cannot_be_used(hermes: Hermes, hermes_home: Path) -> None:
    (hermes_home / "config.yaml").write_text("display:\n  color: sometimes\n")
    done = hermes("doctor")
    assert done.code == 1
    assert "display.color" in done.out
