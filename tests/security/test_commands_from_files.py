"""Commands from files in chats: only for the owner, and only those of the Hermes folder."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from gateway.inbound.commands import menu_commands
from support.gateways import running_gateway
from support.hostile_people import ChatPeople, script, telegram_config

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from hermes_state import SessionDB


async def test_the_owner_runs_a_command_from_a_file_and_others_do_not(
    db: SessionDB, hermes_home: Path, tmp_path: Path, model: Callable[[str], Any]
) -> None:
    (hermes_home / "commands" / "git").mkdir(parents=True)
    (hermes_home / "commands" / "greet.md").write_text("Say hello to $1.")
    (hermes_home / "commands" / "git" / "review.md").write_text("Review.")
    names = [command.name for command in menu_commands()]
    assert "greet" in names
    assert "git:review" not in names  # menus of chat apps refuse such names
    server = model(script("Hello, Ada."))
    config = telegram_config(allowed_users=["ada", "bob"], allow_admin_from=["ada"])
    async with running_gateway(db, tmp_path, config, drain=1, is_in_default_folder=True) as service:
        people = ChatPeople(db, service)
        assert "only available to the owner" in await people.ask("bob", "/greet Bob")
        assert await people.ask("ada", "/greet Ada") == "Hello, Ada."
        assert "hermes trust" not in await people.ask("ada", "/trust")
    assert "Say hello to Ada." in json.dumps(server.requests)
    assert "Bob" not in json.dumps(server.requests)
    assert not (hermes_home / "trusted_folders.json").exists()
