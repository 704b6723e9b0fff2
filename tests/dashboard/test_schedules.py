"""Scheduled jobs on the dashboard: requested, listed, paused, continued, run and deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hermes_conversation.scheduled_jobs import JobRequest, create_job, local_requester
from hermes_state.schedules.repository import DueRuns
from support.command_line import run_hermes

if TYPE_CHECKING:
    import httpx2 as httpx

    from hermes_state import SessionDB

pytestmark = pytest.mark.clock


def test_jobs_are_listed_and_changed(client: httpx.Client, db: SessionDB) -> None:
    job = create_job(db, local_requester(), JobRequest("daily 8:00", "Read the news", name="news"))
    [item] = client.get("/api/schedules").json()["items"]
    assert (item["number"], item["name"], item["to"], item["state"]) == (
        job.job_id, "news", "me", "active",
    )  # fmt: skip
    assert item["next"][0] == job.next_at
    assert len(item["next"]) == 3
    assert client.post("/api/schedules/1/pause").json()["state"] == "paused"
    assert client.post("/api/schedules/1/pause").status_code == 409
    assert client.post("/api/schedules/1/resume").json()["state"] == "active"
    assert client.post("/api/schedules/1/resume").status_code == 409
    assert client.post("/api/schedules/1/run").status_code == 202
    [run] = client.get("/api/schedules/runs", params={"job": 1}).json()["items"]
    assert (run["job"], run["state"], run["is_manual"]) == (1, "requested", True)
    assert client.delete("/api/schedules/1").status_code == 204
    assert client.delete("/api/schedules/1").status_code == 404
    for path in ("pause", "resume", "run"):
        assert client.post(f"/api/schedules/1/{path}").status_code == 404
    assert client.get("/api/schedules").json()["items"] == []


def test_a_job_that_is_over_is_listed_on_request_and_not_continued(
    client: httpx.Client, db: SessionDB
) -> None:
    job = create_job(db, local_requester(), JobRequest("in 5 minutes", "Read the news"))
    db.schedules.hand_over(job, DueRuns((), 1, job.next_at, None, None), lambda _run: {})
    assert client.get("/api/schedules").json()["items"] == []
    [item] = client.get("/api/schedules", params={"with_done": True}).json()["items"]
    assert (item["state"], item["last_state"]) == ("done", "skipped")
    assert client.post("/api/schedules/1/pause").status_code == 409


def test_a_new_job_is_created_after_a_confirmation_in_a_terminal(
    client: httpx.Client, db: SessionDB
) -> None:
    job = {"schedule": "daily  8:00", "prompt": "Read the news", "time_zone": "Europe/Berlin"}
    answer = client.post("/api/schedules", json=job)
    assert answer.status_code == 202, answer.text
    change = answer.json()
    assert (change["kind"], change["name"], change["old"]) == (
        "job", "Read the news", "not scheduled",
    )  # fmt: skip
    assert change["new"] == "daily 8:00 (Europe/Berlin): Read the news"
    assert db.schedules.all() == []
    confirmed = run_hermes("dashboard", "confirm", change["code"], "--yes")
    assert confirmed.code == 0, confirmed.err
    assert "daily 8:00 (Europe/Berlin): Read the news" in confirmed.out
    [item] = client.get("/api/schedules").json()["items"]
    assert (item["schedule"], item["time_zone"], item["person"], item["to"]) == (
        "daily 8:00", "Europe/Berlin", "local:terminal", "me",
    )  # fmt: skip
    [applied] = client.get("/api/pending-changes").json()["items"]
    assert (applied["state"], applied["new"]) == ("applied", "scheduled")


@pytest.mark.parametrize(
    ("job", "reason"),
    [
        ({"schedule": "now and then", "prompt": "x"}, "now and then"),
        ({"schedule": "daily 8:00", "prompt": " "}, "empty"),
        ({"schedule": "daily 8:00", "prompt": "x", "time_zone": "Mars/Base"}, "Mars/Base"),
    ],
)
def test_a_job_that_cannot_be_scheduled_is_refused_at_once(
    client: httpx.Client, job: dict[str, str], reason: str
) -> None:
    refused = client.post("/api/schedules", json=job)
    assert refused.status_code == 400
    assert reason in refused.json()["detail"]
    assert client.get("/api/pending-changes").json()["items"] == []
