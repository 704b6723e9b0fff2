"""`hermes people`, `hermes pairing approve --owner`, and the notice about roles."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from gateway.people import take_role_notice
from gateway.process.config_loader import config_of_home
from hermes_core.paths import config_path
from hermes_state import SessionDB
from support.pairings import pair

if TYPE_CHECKING:
    from support.command_line import Hermes

CONFIG = """\
platforms:
  telegram:
    allowed_users: [7]
    allow_admin_from: [1]
  webhook:
    routes:
      reviews: {prompt: Review.}
"""


def roles(hermes: Hermes) -> dict[str, str]:
    return {item["person"]: item["role"] for item in json.loads(hermes("people", "--json").out)}


def test_people_are_listed_with_their_roles(hermes: Hermes) -> None:
    config_path().write_text(CONFIG)
    with SessionDB() as db:
        pair(db, "telegram", "42", "Ada")
    assert roles(hermes) == {
        "telegram:1": "owner",
        "telegram:42": "member",
        "telegram:7": "member",
        "webhook:reviews": "guest",
    }
    text = hermes("people").out
    assert "Ada" in text
    assert "member" in text


def test_the_role_of_a_person_can_be_changed_and_removed(hermes: Hermes) -> None:
    config_path().write_text(CONFIG)
    with SessionDB() as db:
        pair(db, "telegram", "42", "Ada")
    assert hermes("people", "set", "Ada", "--role", "owner").code == 0
    assert roles(hermes)["telegram:42"] == "owner"
    assert hermes("people", "set", "telegram:42", "--role", "guest").code == 0
    assert roles(hermes)["telegram:42"] == "guest"
    assert "Revoked" in hermes("people", "remove", "telegram:42").out
    assert "telegram:42" not in roles(hermes)
    assert "Unknown person" in hermes("people", "set", "telegram:42", "--role", "guest").err
    assert "config.yaml" in hermes("people", "set", "telegram:1", "--role", "member").err
    assert "webhook" in hermes("people", "set", "webhook:reviews", "--role", "owner").err


def test_a_person_can_be_paired_as_the_owner(hermes: Hermes) -> None:
    with SessionDB() as db:
        code = str(db.pairings.request("telegram", "42", "Ada"))
        other = str(db.pairings.request("telegram", "43", "Bob"))
    assert "as owner" in hermes("pairing", "approve", "telegram", code, "--owner").out
    assert hermes("pairing", "approve", "telegram", other).code == 0
    assert roles(hermes) == {"telegram:42": "owner", "telegram:43": "member"}


def test_the_notice_about_roles_is_given_once_to_those_who_upgrade() -> None:
    config_path().write_text(CONFIG)
    with SessionDB() as db:
        pair(db, "telegram", "42", "Ada")
        notice = take_role_notice(db, config_of_home())
        assert "API_SERVER_KEY, telegram:1. Members: telegram:42, telegram:7." in notice
        assert "webhook:reviews" in notice
        assert "hermes people set PERSON" in notice
        assert take_role_notice(db, config_of_home()) == ""


def test_a_new_installation_gets_no_notice_about_roles() -> None:
    with SessionDB() as db:
        assert take_role_notice(db, config_of_home()) == ""
        pair(db, "telegram", "42", "Ada")
        assert take_role_notice(db, config_of_home()) == ""
