"""Scheduled jobs on the dashboard: listed, paused, continued, run and deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hermes_conversation.scheduled_jobs import JobRequest, create_job, local_requester
from hermes_state.schedules.repository import DueRuns

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
