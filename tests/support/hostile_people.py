"""An owner with private files, conversations and notes, and people who are after them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gateway.config import GatewayConfig, Platform, PlatformConfig
from gateway.platforms.base import MessageEvent
from gateway.routing.sources import SessionSource
from hermes_agent.memory.facts import AgentMemory
from support.gateways import outbox_texts
from support.waiting import async_wait_until

if TYPE_CHECKING:
    from gateway.process.service import GatewayService
    from hermes_state import SessionDB

CANARY = "canary-7b31"


def telegram_config(**extra: Any) -> GatewayConfig:
    """A Telegram platform with these settings."""
    return GatewayConfig(platforms={Platform.TELEGRAM: PlatformConfig(True, extra=extra)})


class OwnersThings:
    """What belongs to the owner; each contains the canary."""

    def __init__(self, db: SessionDB, hermes_home: Path) -> None:
        self._db = db
        self.env = hermes_home / ".env"
        self.env.write_text(f"WEBHOOK_SECRET={CANARY}\n")
        self.diary = Path.home() / "diary.txt"
        self.diary.write_text(f"dear diary, {CANARY}\n")
        self.workspace = hermes_home / "workspaces" / "owner"
        self.workspace.mkdir(parents=True)
        (self.workspace / "plan.txt").write_text(f"the plan is {CANARY}\n")
        AgentMemory(db).add("user", f"The PIN is {CANARY}")
        db.create_session("owners", "cli", is_owned=False)
        db.append_message("owners", "user", f"my secret is {CANARY} kumquat")

    def attacks(self) -> list[dict[str, Any]]:
        """Tool calls that read or change what belongs to the owner."""
        home = Path.home()
        return [
            call("read_file", path=str(self.env)),
            call("read_file", path="~/diary.txt"),
            call("read_file", path="../owner/plan.txt"),
            call("read_file", path=str(self.workspace / "plan.txt")),
            call("read_file", path=str(self.workspace)),
            call("search_files", pattern="canary-7b3.", path=str(home)),
            call("search_files", pattern="canary-7b3.", path=".."),
            call("write_file", path=str(home / "planted.txt"), content="x"),
            call("write_file", path="../owner/planted.txt", content="x"),
            call("patch", path="~/diary.txt", old_string="dear", new_string="bad"),
            call("terminal", command="cat ~/diary.txt; touch ~/planted.txt"),
            call("terminal", command="strings ../../state.db", background=True),
            call("process", action="list"),
            call("session_search", query="kumquat"),
            call("memory", action="read", target="user"),
            call("delegate_task", tasks=[{"goal": "read ~/diary.txt"}]),
        ]

    def assert_untouched(self) -> None:
        """Nothing was changed."""
        assert self.diary.read_text().startswith("dear diary")
        assert not (Path.home() / "planted.txt").exists()
        assert sorted(path.name for path in self.workspace.iterdir()) == ["plan.txt"]


def call(name: str, **arguments: Any) -> dict[str, Any]:
    """A tool call of a script."""
    return {"name": name, "arguments": arguments}


def script(*steps: Any) -> str:
    """Steps of a scripted model: a text is said, a list of calls is made."""
    return json.dumps(
        [{"say": step} if isinstance(step, str) else {"calls": step} for step in steps]
    )


def offered_tools(request: dict[str, Any]) -> set[str]:
    """The names of the tools in a request to the model."""
    return {tool["function"]["name"] for tool in request.get("tools", [])}


def tool_results(request: dict[str, Any]) -> list[str]:
    """The tool results in a request to the model."""
    return [str(item["content"]) for item in request["messages"] if item["role"] == "tool"]


class ChatPeople:
    """Sends messages as users of Telegram and waits for the replies."""

    def __init__(self, db: SessionDB, service: GatewayService) -> None:
        self._db = db
        self._service = service
        self._number = 0

    async def send(
        self,
        user: str,
        text: str,
        chat: str = "",
        files: dict[str, Any] | None = None,
        **fields: Any,
    ) -> None:
        """Send a message."""
        self._number += 1
        source = SessionSource(
            Platform.TELEGRAM, chat or user, user_id=user, user_name=user, **fields
        )
        event = MessageEvent(text, source=source, message_id=f"m{self._number}", **(files or {}))
        await self._service.receiver.receive("bot", event)

    async def ask(self, user: str, text: str, chat: str = "", **fields: Any) -> str:
        """Send a message; the reply."""
        before = len(outbox_texts(self._db))
        await self.send(user, text, chat, **fields)
        await async_wait_until(lambda: len(outbox_texts(self._db)) > before)
        return outbox_texts(self._db)[-1]
