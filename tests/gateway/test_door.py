"""Who is let in."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from gateway.config import GatewayConfig, Platform, PlatformConfig
from gateway.inbound.access_control import AccessControl
from gateway.session import SessionSource

if TYPE_CHECKING:
    from hermes_state import SessionDB


def source(user: str | None = "u1", **facts: Any) -> SessionSource:
    given = {"platform": Platform.TELEGRAM, "chat_id": "c1", "user_id": user, **facts}
    return SessionSource(**given)


def door(db: SessionDB, environment: dict[str, str] | None = None, **extra: Any) -> AccessControl:
    config = GatewayConfig(platforms={Platform.TELEGRAM: PlatformConfig(True, extra=extra)})
    return AccessControl(db, config, environment or {})


def test_a_stranger_gets_a_code_and_is_in_once_it_is_approved(db: SessionDB) -> None:
    verdict = door(db).verdict(source())
    assert not verdict.is_in
    found = re.search(r"approve telegram (\w{8})", verdict.answer)
    assert found is not None
    assert door(db).verdict(source()).answer == ""  # one code at a time
    assert db.approve_pairing("telegram", found[1]) is not None
    assert door(db).verdict(source()).is_in
    assert not door(db).verdict(source("u2")).is_in


def test_nobody_is_somebody_without_a_name(db: SessionDB) -> None:
    assert door(db).verdict(source(None)) == (False, "")
    assert door(db).verdict(source("")) == (False, "")


def test_lists_let_people_and_groups_in_and_end_invitations(db: SessionDB) -> None:
    listed = door(db, allowed_users=["u1", 7], allowed_chats="g1, g2")
    assert listed.verdict(source()).is_in
    assert listed.verdict(source("7")).is_in
    assert listed.verdict(source("u9")) == (False, "")
    assert listed.verdict(source("u9", chat_type="group", chat_id="g2")).is_in
    assert not listed.verdict(source("u9", chat_type="dm", chat_id="g2")).is_in
    named = door(db, {"TELEGRAM_ALLOWED_USERS": "u5", "GATEWAY_ALLOWED_USERS": "u6"})
    assert [named.verdict(source(one)).is_in for one in ("u5", "u6", "u7")] == [True, True, False]
    assert door(db, {"TELEGRAM_ALLOWED_USERS": "*"}).verdict(source("anybody")).is_in


def test_no_code_is_shown_in_a_group_or_where_strangers_are_ignored(db: SessionDB) -> None:
    assert door(db).verdict(source(chat_type="group")) == (False, "")
    ignoring = door(db, unauthorized_dm_behavior="ignore")
    assert ignoring.verdict(source("u3")) == (False, "")


def test_who_reaches_the_local_socket_is_in(db: SessionDB) -> None:
    assert door(db).verdict(source(platform=Platform.LOCAL)).is_in


def test_whoever_is_let_in_by_name_is_an_admin_where_nobody_is_listed(db: SessionDB) -> None:
    found = door(db, {"TELEGRAM_ALLOWED_USERS": "u1"})
    assert found.is_admin(source())
    assert not found.is_admin(source("u2"))
    assert not found.is_admin(source(None))
    assert not found.is_admin(source(chat_type="group"))
    assert not door(db, {"TELEGRAM_ALLOWED_USERS": "*"}).is_admin(source())


def test_where_admins_are_listed_nobody_else_is_one(db: SessionDB) -> None:
    found = door(db, {"TELEGRAM_ALLOWED_USERS": "u1,u2"}, allow_admin_from=["u2"])
    assert not found.is_admin(source())
    assert found.is_admin(source("u2"))
    assert found.is_admin(source("u2", chat_type="group"))


def test_what_a_webhook_brings_decides_nothing(db: SessionDB) -> None:
    assert door(db).is_admin(source(platform=Platform.LOCAL))
    assert not door(db).is_admin(source(platform=Platform.WEBHOOK))


def test_in_a_group_only_what_is_addressed_to_it_is_answered(db: SessionDB) -> None:
    group = source(chat_type="group", chat_id="g1")
    assert not door(db).is_for_us(group, is_addressed=False)
    assert door(db).is_for_us(group, is_addressed=True)
    assert door(db).is_for_us(source(), is_addressed=False)
    assert door(db, require_mention=False).is_for_us(group, is_addressed=False)
    assert door(db, free_response_channels=["g1"]).is_for_us(group, is_addressed=False)
