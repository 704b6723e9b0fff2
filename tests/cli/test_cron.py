"""`hermes cron`: jobs are added, listed, changed, run by a real gateway, and imported."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from gateway.platforms.local import socket_path
from hermes_core.paths import hermes_home as home
from support.chat import LocalChatClient
from support.gateway_process import GatewayProcess
from support.model_servers import configured_models
from support.waiting import async_wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.command_line import Hermes

pytestmark = pytest.mark.clock

ORIGINAL_JOBS = {
    "jobs": [
        {
            "id": "a1b2",
            "name": "Daily briefing",
            "prompt": "News",
            "schedule": {"kind": "cron", "expr": "0 9 * * *", "display": "0 9 * * *"},
            "deliver": "telegram:-100123",
            "repeat": {"times": None, "completed": 4},
            "enabled": True,
            "state": "scheduled",
        },
        {
            "id": "c3",
            "prompt": "Check twice",
            "schedule": {"kind": "interval", "minutes": 30},
            "skills": ["report"],
            "repeat": {"times": 3, "completed": 1},
            "enabled": False,
            "deliver": "origin",
            "origin": {"platform": "local", "chat_id": "c1"},
        },
        {"id": "d4", "script": "a.sh", "schedule": {"kind": "interval", "minutes": 5}},
        {
            "id": "e5",
            "prompt": "Over",
            "schedule": {"kind": "once", "run_at": "2020-01-01T09:00:00"},
        },
    ]
}


def facts(hermes: Hermes, *arguments: str) -> Any:
    return json.loads(hermes("cron", *arguments, "--json").out)


def test_a_job_is_added_shown_changed_and_removed(hermes: Hermes) -> None:
    added = hermes("cron", "add", "every weekday 8:00", "Read the news", "--tz", "Europe/Berlin")
    assert added.code == 0
    assert added.out.startswith("Added job 1: Read the news\nnext  ")
    assert added.out.count("08:00 CE") == 3
    assert "The gateway, which runs jobs, is not running" in added.err
    [job] = facts(hermes, "list")
    assert (job["schedule"], job["time_zone"], job["to"], job["state"]) == (
        "every weekday 8:00", "Europe/Berlin", "none", "active",
    )  # fmt: skip
    assert len(job["next"]) == 3
    edited = facts(hermes, "edit", "1", "--schedule", "daily 7:30", "--catch-up", "all", "--once")
    assert (edited["rule"], edited["catch_up"], len(edited["next"])) == (
        "cron 30 7 * * *", "all", 1,
    )  # fmt: skip
    assert hermes("cron", "pause", "1").out == "Paused job 1: Read the news\n"
    assert "paused (paused by the owner)" in hermes("cron", "show", "1").out
    assert "is not active" in hermes("cron", "pause", "1").err
    assert hermes("cron", "resume", "1").code == 0
    assert hermes("cron", "run", "1").code == 0
    assert [run["state"] for run in facts(hermes, "history", "1")] == ["requested"]
    assert "on request" in hermes("cron", "history").out
    assert hermes("cron", "remove", "1").code == 0
    assert facts(hermes, "list") == []
    assert "No scheduled jobs" in hermes("cron").out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("add", "sometimes", "x"), "Unknown schedule 'sometimes'"),
        (("add", "daily 8:00", " "), "The text of the job is empty"),
        (("add", "daily 8:00", "x", "--tz", "Mars/Base"), "Unknown time zone 'Mars/Base'"),
        (
            ("add", "daily 8:00", "x", "--to", "telegram:me"),
            "No direct chat of the owner on telegram",
        ),
        (("add", "daily 8:00", "x", "--to", "pigeon:me"), "unknown platform 'pigeon'"),
        (("add", "daily 8:00", "x", "--reminder"), "A reminder needs a chat"),
        (("show", "7"), "No scheduled job 7"),
    ],
)
def test_what_cannot_be_done_is_explained(
    hermes: Hermes, arguments: tuple[str, ...], message: str
) -> None:
    if arguments[0] == "show":
        hermes("cron", "add", "daily 8:00", "x")
    result = hermes("cron", *arguments)
    assert result.code == 2
    assert message in result.err


def test_jobs_of_hermes_agent_are_listed_and_taken_over_once(hermes: Hermes) -> None:
    path = home() / "cron" / "jobs.json"
    path.parent.mkdir()
    path.write_text(json.dumps(ORIGINAL_JOBS))
    before = path.read_bytes()
    doctor = hermes("doctor").out
    assert "3 jobs of hermes-agent: Daily briefing (0 9 * * *), Check twice" in doctor
    assert "hermes cron import" in doctor
    assert all("imported as" not in item["result"] for item in facts(hermes, "import", "--dry-run"))
    results = {item["id"]: item["result"] for item in facts(hermes, "import")}
    assert results["a1b2"] == "imported as job 1 (active)"
    assert results["c3"] == "imported as job 2 (paused)"
    assert results["d4"] == "not imported: it runs a script"
    assert "has passed" in results["e5"]
    again = {item["id"]: item["result"] for item in facts(hermes, "import")}
    assert (again["a1b2"], again["c3"]) == ("already imported", "already imported")
    first, second = facts(hermes, "list")
    assert (first["to"], first["schedule"]) == ("telegram:-100123", "0 9 * * *")
    assert (second["to"], second["runs_left"]) == ("local:c1", 2)
    assert second["prompt"] == "Use the skills report.\n\nCheck twice"
    assert path.read_bytes() == before
    assert "Daily briefing" not in hermes("doctor").out


@pytest.fixture
def gateway(hermes_home: Path) -> Iterator[GatewayProcess]:
    with configured_models() as start_model:
        start_model("[{say: All is well., cost: 0.5}]")
        process = GatewayProcess()
        process.start()
        yield process
        process.cleanup()


async def test_a_running_gateway_runs_what_the_commands_schedule(
    hermes: Hermes, gateway: GatewayProcess
) -> None:
    await async_wait_until(gateway.is_up)
    reminder = hermes("cron", "add", "in 1 second", "tea", "--reminder", "--to", "local:c1")
    assert reminder.code == 0, reminder.err
    hermes("cron", "add", "daily 8:00", "How are things?", "--to", "local:c1", "--name", "state")
    async with LocalChatClient(socket_path()) as chat:
        await chat.send("/remind list", "m1")
        assert await chat.wait_for(1)
        await async_wait_until(lambda: "Reminder: tea" in chat.texts)
        assert hermes("cron", "run", "2").code == 0
        await async_wait_until(lambda: "All is well." in chat.texts)
    await async_wait_until(lambda: facts(hermes, "show", "2")["runs"]["dollars"] == 0.5)
    [run, *_] = facts(hermes, "history", "2")
    assert run["state"] == "done"
    listed = json.loads(hermes("sessions", "list", "--source", "cron", "--json").out)
    assert [row["id"] for row in listed] == [run["session_id"]]
    assert [job["number"] for job in facts(hermes, "list")] == [2]
    assert gateway.stop() == 0
