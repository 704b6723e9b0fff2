"""`/remind` in a terminal, and who may have which results sent where."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hermes_conversation.scheduled_jobs import (
    NO_CHAT_YET,
    JobRequest,
    chat_requester,
    create_job,
    describe_target,
    local_requester,
    remind,
)
from hermes_core.config.file import ConfigFile
from hermes_core.errors import UsageError
from hermes_core.roles import Role
from hermes_state import SessionDB

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.clock


@pytest.fixture
def db() -> Iterator[SessionDB]:
    with SessionDB() as store:
        yield store


def test_a_reminder_of_a_terminal_goes_to_the_owners_chat(db: SessionDB) -> None:
    reply = remind(db, local_requester(), "20m tea")
    assert reply.startswith("Reminder 1 set for ")
    assert reply.endswith(NO_CHAT_YET)
    [job] = db.schedules.all()
    assert (job.role, describe_target(job.target)) == ("owner", "me")
    ConfigFile.of_home().set("gateway.notify", "telegram:42")
    assert NO_CHAT_YET not in remind(db, local_requester(), "30m tea")


def test_programs_get_no_reminders(db: SessionDB) -> None:
    source = {"platform": "webhook", "chat_id": "deploy", "user_id": "deploy"}
    with pytest.raises(UsageError, match="needs a chat"):
        remind(db, chat_requester(source, Role.MEMBER), "20m tea")
    owner = chat_requester({**source, "platform": "api_server"}, Role.OWNER)
    assert describe_target(owner.target) == "me"


def test_the_zone_of_a_job_is_the_configured_one(db: SessionDB) -> None:
    ConfigFile.of_home().set("display.timezone", "Asia/Tokyo")
    job = create_job(db, local_requester(), JobRequest("daily 8:00", "news"))
    assert job.zone == "Asia/Tokyo"
    other = create_job(db, local_requester(), JobRequest("daily 8:00", "news", zone="UTC"))
    assert other.next_at is not None
    assert job.next_at is not None
    assert (other.next_at - job.next_at) % 86400 == 9 * 3600
