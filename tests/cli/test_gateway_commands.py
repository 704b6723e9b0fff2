"""`hermes gateway` start, stop and status, `hermes pairing`, and the checks of `hermes doctor`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from hermes_state import SessionDB

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def hermes_with_cleanup(hermes: Any) -> Iterator[Any]:
    yield hermes
    hermes("gateway", "stop")


def test_the_gateway_is_started_shown_and_stopped(hermes_with_cleanup: Any) -> None:
    hermes = hermes_with_cleanup
    assert "gateway is not running" in hermes("gateway", "status").out
    assert "Gateway started" in hermes("gateway", "start").out
    data = json.loads(hermes("gateway", "status", "--json").out)
    assert (data["running"], data["gateway_state"], data["waiting"]) == (True, "running", 0)
    assert list(data["platforms"]) == ["local"]
    for action in ("start", "run"):
        again = hermes("gateway", action)
        assert again.code == 2
        assert "already running" in again.err
    assert "Gateway stopped" in hermes("gateway", "stop").out
    assert "gateway is not running" in hermes("gateway", "stop").out
    assert json.loads(hermes("gateway", "status", "--json").out)["gateway_state"] == "stopped"


def test_users_are_approved_and_revoked(hermes: Any) -> None:
    with SessionDB() as db:
        code = db.pairings.request("telegram", "42", "Somebody")
    assert "requested" in hermes("pairing", "list").out
    assert "1 user waiting for approval" in hermes("gateway", "status").out
    assert json.loads(hermes("gateway", "status", "--json").out)["asking"] == 1
    assert (
        "Unknown or expired code for telegram"
        in hermes("pairing", "approve", "telegram", "WRONG123").err
    )
    assert (
        "Approved Somebody on telegram" in hermes("pairing", "approve", "Telegram", str(code)).out
    )
    data = json.loads(hermes("pairing", "list", "--json").out)
    assert [item["user_id"] for item in data["allowed"]] == ["42"]
    assert hermes("pairing", "revoke", "telegram", "42").code == 0
    assert hermes("pairing", "revoke", "telegram", "42").code == 2
    assert "No approved users" in hermes("pairing", "list").out
    for number in range(5):
        hermes("pairing", "approve", "telegram", f"WRONG{number}")
    assert "Try again in an hour" in hermes("pairing", "approve", "telegram", "WRONG9").err


def test_doctor_reports_pending_messages_and_undelivered_replies(
    hermes: Any,
) -> None:
    assert not any(
        check["name"] == "chats" for check in json.loads(hermes("doctor", "--json").out)["checks"]
    )
    with SessionDB() as db:
        db.inbox.receive(
            platform="telegram",
            account="a",
            chat_id="c",
            message_id="1",
            session_key="k",
            payload={},
        )
        number = db.outbox.add("r", platform="telegram", target={}, payload={"text": "hi"})
        db.outbox.claim()
        db.outbox.postpone(number, "blocked by the user", is_hopeless=True)
    result = {
        check["name"]: check for check in json.loads(hermes("doctor", "--json").out)["checks"]
    }
    assert result["gateway"]["advice"] == "Run `hermes gateway start`"
    assert "blocked by the user" in result["replies"]["detail"]


def test_a_failed_start_is_explained(hermes: Any, hermes_home: Path) -> None:
    (hermes_home / "config.yaml").write_text("streaming: sometimes\n")
    failed = hermes("gateway", "start")
    assert failed.code == 2
    assert "streaming in" in failed.err
