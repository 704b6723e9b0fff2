"""`hermes permissions`, `--mode`, `--allow` and the exit code without a person to ask."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from support.model_servers import model_argument, model_servers

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.command_line import Hermes


@pytest.fixture
def serve() -> Iterator[Any]:
    with model_servers() as start:
        yield start


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "work"
    (folder / "old").mkdir(parents=True)
    monkeypatch.chdir(folder)
    return folder


def ask(hermes: Hermes, serve: Any, command: str, *options: str) -> Any:
    steps = json.dumps(
        [{"calls": [{"name": "terminal", "arguments": {"command": command}}]}, {"say": "Done."}]
    )
    server = serve(steps)
    return hermes("chat", "-q", "go", "--model", model_argument(server), *options), server


def test_rules_are_added_listed_and_removed(hermes: Hermes) -> None:
    assert hermes("permissions", "add", "run: git push origin *").code == 0
    assert hermes("permissions", "add", "network").code == 0
    listed = json.loads(hermes("permissions", "list", "--json").out)
    assert listed["rules"] == ["network", "run: git push origin *"]
    assert listed["mode"] == "workspace"
    assert "run: git push origin *" in hermes("permissions", "list").out
    assert hermes("permissions", "remove", "network").code == 0
    assert hermes("permissions", "remove", "network").code == 2
    assert hermes("permissions", "add", "everything at all").code == 2


def test_without_a_person_the_exit_code_and_the_model_say_so(
    hermes: Hermes, serve: Any, work: Path
) -> None:
    result, server = ask(hermes, serve, "rm -rf old")
    assert result.code == 3
    assert "needed approval" in result.err
    assert (work / "old").exists()
    told = json.dumps(server.requests[-1])
    assert "no user can be asked" in told
    assert "user denied" not in told


def test_an_allowed_command_runs_without_a_person(hermes: Hermes, serve: Any, work: Path) -> None:
    result, _ = ask(hermes, serve, "rm -rf old", "--allow", "run: rm -rf old")
    assert (result.code, (work / "old").exists()) == (0, False)


def test_an_allowed_command_covers_no_other(hermes: Hermes, serve: Any, work: Path) -> None:
    result, _ = ask(hermes, serve, "rm -rf old ../x", "--allow", "run: rm -rf old")
    assert (result.code, (work / "old").exists()) == (3, True)


def test_plan_mode_of_one_run_changes_nothing(hermes: Hermes, serve: Any, work: Path) -> None:
    result, server = ask(hermes, serve, "touch new", "--mode", "plan")
    assert not (work / "new").exists()
    assert result.code == 0
    assert "Plan mode" in json.dumps(server.requests[-1]) or "Read-only" in json.dumps(
        server.requests[-1]
    )
    ask(hermes, serve, "touch new")
    assert (work / "new").exists()


def test_an_invalid_rule_is_a_usage_error(hermes: Hermes, serve: Any, work: Path) -> None:
    result, server = ask(hermes, serve, "true", "--allow", "rm-recursive")
    assert result.code == 2
    assert not server.requests
    assert work.exists()
