"""A home of hermes-agent, built as its files are described."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from hermes_state.engine.sqlite.driver import sqlite3
from state.foreign_files import foreign_message, foreign_session, make_schema_16

if TYPE_CHECKING:
    from pathlib import Path

SECRET = "sk-or-original-secret"
TOKEN = "12345:original-token"
CONFIG = """\
# Written by hermes-agent.
model:
  default: anthropic/claude-sonnet-4.6   # the usual one
  provider: openrouter
  base_url: https://openrouter.ai/api/v1
  context_length: 200000
agent:
  max_turns: 90
  restart_drain_timeout: 60
compression:
  enabled: true
  threshold: 0.5
terminal:
  backend: docker
display:
  busy_input_mode: queue
  skin: default
session_reset:
  mode: idle
  idle_minutes: 120
mcp_servers:
  files:
    command: npx
    args: [-y, server]
telegram:
  allow_from: [77]
  allow_admin_from: [42]
platforms:
  telegram:
    enabled: true
    require_mention: false
"""
ENV = f"""\
OPENROUTER_API_KEY={SECRET}
TELEGRAM_BOT_TOKEN={TOKEN}
TELEGRAM_ALLOWED_USERS=42,43
DISCORD_ALLOW_ALL_USERS=true
FIRECRAWL_API_KEY=fc-original
"""
JOBS = {
    "jobs": [
        {
            "id": "a1b2",
            "name": "News",
            "prompt": "Summarize the news.",
            "schedule": {"kind": "cron", "expr": "0 9 * * *"},
            "deliver": "local",
        },
        {"id": "c3d4", "name": "Script", "script": "x.py", "schedule": "every 1h"},
    ]
}
ROUTE_KEY = "agent:main:telegram:dm:42"


def make_home(home: Path) -> Path:
    """A home with one of everything."""
    home.mkdir(parents=True, exist_ok=True)
    home.chmod(0o700)
    write(home / "config.yaml", CONFIG)
    write(home / ".env", ENV)
    write(home / "cron/jobs.json", json.dumps(JOBS))
    approved = {"44": {"user_name": "ada", "approved_at": 1781500000.0}}
    write(home / "pairing/telegram-approved.json", json.dumps(approved))
    others = {"@ada:example.org": {"user_name": "ada", "approved_at": 1781500000.0}}
    write(home / "platforms/pairing/matrix-approved.json", json.dumps(others))
    write(home / "memories/MEMORY.md", "ada likes tea.\n")
    write(home / "memories/USER.md", "The user is ada.\n")
    write(home / "skills/notes/tea/SKILL.md", "---\nname: tea\ndescription: Make tea.\n---\n")
    write(home / "skills/notes/tea/scripts/boil.sh", "#!/bin/sh\n").chmod(0o755)
    unlock = {"unlocked_at": 1781500000, "first_tier": "Copper", "evidence": None}
    state = {"unlocks": {"night_owl": unlock}}
    write(home / "plugin-data/hermes-achievements/state.json", json.dumps(state))
    make_history(home, "s1", "Green or black?")
    route = {
        "session_key": ROUTE_KEY,
        "session_id": "s1",
        "created_at": "2026-06-15T12:00:00",
        "updated_at": "2026-06-15T12:05:00",
        "platform": "telegram",
        "chat_type": "dm",
    }
    lost = {**route, "session_id": "gone"}
    routes = {"_README": "state.db", ROUTE_KEY: route, f"{ROUTE_KEY}:9": lost}
    write(home / "sessions/sessions.json", json.dumps(routes))
    profile = home / "profiles/work"
    profile.mkdir(parents=True)
    make_history(profile, "w1", "Write the report.")
    write(profile / "memories/MEMORY.md", "Work notes.\n")
    return home


def make_history(home: Path, session_id: str, text: str) -> None:
    """A history with one conversation."""
    make_schema_16(home / "state.db")
    connection = sqlite3.connect(home / "state.db", isolation_level=None)
    connection.execute(*foreign_session(session_id, 1781500000.0, title=f"Talk {session_id}"))
    connection.execute(*foreign_message(session_id, "user", text, 1781500001.0))
    connection.execute(*foreign_message(session_id, "assistant", "Yes.", 1781500002.0))
    connection.close()
    (home / "state.db").chmod(0o600)


def write(path: Path, text: str) -> Path:
    """Write a private file, with its folders."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o600)
    return path
