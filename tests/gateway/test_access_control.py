"""Access control of the gateway."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from gateway.config import GatewayConfig, Platform, PlatformConfig
from gateway.inbound.access_control import AccessControl
from gateway.platforms.base import MessageEvent
from gateway.session import SessionSource
from hermes_core.roles import Role
from support.gateways import outbox_texts, running_gateway
from support.pairings import pair

if TYPE_CHECKING:
    from pathlib import Path

    from hermes_state import SessionDB


def source(user: str | None = "u1", **fields: Any) -> SessionSource:
    result = {"platform": Platform.TELEGRAM, "chat_id": "c1", "user_id": user, **fields}
    return SessionSource(**result)


def access(db: SessionDB, environment: dict[str, str] | None = None, **extra: Any) -> AccessControl:
    config = GatewayConfig(platforms={Platform.TELEGRAM: PlatformConfig(True, extra=extra)})
    return AccessControl(db, config, environment or {})


def test_an_unknown_user_gets_a_code_and_has_access_once_it_is_approved(db: SessionDB) -> None:
    decision = access(db).decide(source())
    assert not decision.is_allowed
    match = re.search(r"approve telegram (\w{8})", decision.reply)
    assert match is not None
    assert access(db).decide(source()).reply == ""  # one code at a time
    assert db.pairings.approve("telegram", match[1]) is not None
    assert access(db).decide(source()).is_allowed
    assert not access(db).decide(source("u2")).is_allowed


def test_a_user_without_an_id_has_no_access(db: SessionDB) -> None:
    assert access(db).decide(source(None)) == (False, "")
    assert access(db).decide(source("")) == (False, "")


def test_allow_lists_grant_users_and_groups_access_and_disable_pairing(db: SessionDB) -> None:
    listed = access(db, allowed_users=["u1", 7], allowed_chats="g1, g2")
    assert listed.decide(source()).is_allowed
    assert listed.decide(source("7")).is_allowed
    assert listed.decide(source("u9")) == (False, "")
    assert listed.decide(source("u9", chat_type="group", chat_id="g2")).is_allowed
    assert not listed.decide(source("u9", chat_type="dm", chat_id="g2")).is_allowed
    named = access(db, {"TELEGRAM_ALLOWED_USERS": "u5", "GATEWAY_ALLOWED_USERS": "u6"})
    assert [named.decide(source(name)).is_allowed for name in ("u5", "u6", "u7")] == [
        True,
        True,
        False,
    ]
    assert access(db, {"TELEGRAM_ALLOWED_USERS": "*"}).decide(source("anybody")).is_allowed


def test_addresses_of_email_are_listed_in_any_case_and_unknown_ones_get_no_reply(
    db: SessionDB,
) -> None:
    extra = {"allowed_users": ["Ann@Example.org"], "allow_admin_from": "ANN@example.org"}
    config = GatewayConfig(platforms={Platform.EMAIL: PlatformConfig(True, extra=extra)})
    listed = AccessControl(db, config, {"EMAIL_ALLOWED_USERS": "Bob@example.org"})
    ann = source("ann@example.org", platform=Platform.EMAIL)
    assert listed.has_access(ann)
    assert listed.role_of(ann) is Role.OWNER
    assert listed.has_access(source("bob@example.org", platform=Platform.EMAIL))
    unknown = AccessControl(db, GatewayConfig(platforms={Platform.EMAIL: PlatformConfig(True)}), {})
    assert unknown.decide(source("eve@example.org", platform=Platform.EMAIL)) == (False, "")


def test_no_code_is_sent_in_a_group_or_where_unknown_users_are_ignored(db: SessionDB) -> None:
    assert access(db).decide(source(chat_type="group")) == (False, "")
    ignoring = access(db, unauthorized_dm_behavior="ignore")
    assert ignoring.decide(source("u3")) == (False, "")


def test_clients_of_the_local_socket_have_access(db: SessionDB) -> None:
    assert access(db).decide(source(platform=Platform.LOCAL)).is_allowed


def test_users_who_are_paired_or_listed_are_members_and_all_others_are_guests(
    db: SessionDB,
) -> None:
    pair(db, "telegram", "paired")
    result = access(db, {"TELEGRAM_ALLOWED_USERS": "u1"}, allowed_chats=["c1"])
    assert result.role_of(source()) is Role.MEMBER
    assert result.role_of(source("paired")) is Role.MEMBER
    assert result.role_of(source("u2", chat_type="group")) is Role.GUEST
    assert result.role_of(source(None)) is Role.GUEST
    assert access(db, {"TELEGRAM_ALLOWED_USERS": "*"}).role_of(source()) is Role.GUEST


def test_the_owner_names_other_owners(db: SessionDB) -> None:
    result = access(db, {"TELEGRAM_ALLOWED_USERS": "u1,u2,u3"}, allow_admin_from=["u2"])
    db.people.set_role("telegram", "u3", "owner")
    assert result.role_of(source()) is Role.MEMBER
    assert result.role_of(source("u2")) is Role.OWNER
    assert result.role_of(source("u2", chat_type="group")) is Role.OWNER
    assert result.role_of(source("u3")) is Role.OWNER
    assert not result.has_all_history(source("u3", chat_type="group"))


def test_a_role_can_be_lowered(db: SessionDB) -> None:
    pair(db, "telegram", "u1")
    db.people.set_role("telegram", "u1", "guest")
    assert access(db).decide(source()).is_allowed
    assert access(db).role_of(source()) is Role.GUEST


def test_a_webhook_is_a_guest_and_never_the_owner(db: SessionDB) -> None:
    webhook = source("reviews", platform=Platform.WEBHOOK)
    assert access(db).role_of(source(platform=Platform.LOCAL)) is Role.OWNER
    assert access(db).role_of(webhook) is Role.GUEST
    db.people.set_role("webhook", "reviews", "owner")
    assert access(db).role_of(webhook) is Role.MEMBER


def test_an_api_key_has_the_role_it_was_created_with(db: SessionDB) -> None:
    db.people.add_api_key("ci", "guest")
    db.people.add_api_key("phone", "owner")
    api = {"platform": Platform.API_SERVER}
    assert access(db).role_of(source("anyone", **api)) is Role.OWNER  # with API_SERVER_KEY
    assert access(db).role_of(source("key:ci", **api)) is Role.GUEST
    assert access(db).role_of(source("key:phone", **api)) is Role.OWNER
    assert access(db).role_of(source("key:removed", **api)) is Role.GUEST


def test_in_a_group_only_messages_to_the_bot_are_answered(db: SessionDB) -> None:
    group = source(chat_type="group", chat_id="g1")
    assert not access(db).is_for_agent(group, is_addressed=False)
    assert access(db).is_for_agent(group, is_addressed=True)
    assert access(db).is_for_agent(source(), is_addressed=False)
    assert access(db, require_mention=False).is_for_agent(group, is_addressed=False)
    assert access(db, free_response_channels=["g1"]).is_for_agent(group, is_addressed=False)


async def test_nothing_of_a_message_from_an_unknown_user_is_stored(
    db: SessionDB, tmp_path: Path, answering: Any
) -> None:
    answering("[]")
    event = MessageEvent("hello", source=source("7", chat_id="7"), message_id="1")
    async with running_gateway(db, tmp_path) as service:
        await service.receiver.receive("bot", event)
    assert db.inbox.find_id("telegram", "bot", "7", "1") is None
    assert "hello" not in str(outbox_texts(db))
