"""Commands of the screen: most are carried out where the conversation is, some are its own."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from hermes_tui.rewind import BranchTree, RewindDialog
from hermes_tui.session_picker import SessionPicker
from hermes_tui.submission import UNREACHABLE

if TYPE_CHECKING:
    from hermes_tui.app import HermesApp
    from hermes_tui.rewind import RewindAction

BUSY: Final = "A turn is running; wait for it, or stop it with Ctrl+C."
OWN: Final = (
    {"name": "/rewind", "hint": "", "help": "rewind to an earlier message (F3)"},
    {"name": "/tree", "hint": "", "help": "show this conversation and its branches (F4)"},
    {"name": "/image", "hint": "FILE", "help": "attach an image to the next message"},
)
LEAVING: Final = frozenset({"/quit", "/exit", "/q"})


class TuiCommands:
    """What a line that begins with a slash does."""

    def __init__(self, app: HermesApp) -> None:
        self._app = app

    def known(self) -> list[dict[str, Any]]:
        """All of them."""
        return [*self._app.conversation.commands, *OWN]

    def is_leaving(self, line: str) -> bool:
        """Whether a line says that it is over."""
        return line.lower().partition(" ")[0] in LEAVING

    async def run(self, line: str) -> None:
        """Carry out a line."""
        name, _, words = line[1:].partition(" ")
        name, words = name.lower(), words.strip()
        if name in {"resume", "sessions"} and not words:
            await self.pick()
        elif name == "rewind":
            await self.rewind()
        elif name == "tree":
            await self.family()
        elif name == "image":
            await self.attach(words)
        elif self._app.is_busy and not self._is_for_busy(name):
            await self._app.note(BUSY, is_error=True)
        else:
            self._app.run_worker(self._dispatch(name, words))

    def _is_for_busy(self, name: str) -> bool:
        return any(
            one["while_busy"] and f"/{name}" in (one["name"], *one["aliases"])
            for one in self._app.conversation.commands
        )

    async def _dispatch(self, name: str, words: str) -> None:
        app = self._app
        is_first = not app.is_busy
        if is_first:
            app.work_begins()
        found = await self.ask("command.dispatch", name=name, arg=words)
        if is_first:
            app.work_ends()
        if found is not None:
            await self._follow(found)

    async def _follow(self, found: dict[str, Any]) -> None:
        """Show what a command said and changed, and do what it asks for."""
        app = self._app
        if found["changed"]:
            await self._app.showing.reload()
        if found["output"]:
            await app.note(found["output"])
        if found["type"] == "prefill":
            app.prompt.fill(found["message"])
        elif found["type"] == "send":
            await app.saying.say(found["message"])
        elif found["type"] == "leave":
            app.action_leave()

    async def ask(self, method: str, **params: Any) -> Any:
        """The answer; None when there is none, and why is told."""
        try:
            return await asyncio.to_thread(self._app.conversation.call, method, **params)
        except UNREACHABLE as error:
            await self._app.note(str(error), is_error=True)
            return None

    # The screen's own

    async def attach(self, path: str) -> None:
        """Let a picture go along with what is said next."""
        found = await self.ask("image.attach", path=path)
        if found is not None:
            self._app.status.attach(found["count"])

    async def pick(self) -> None:
        """Choose another conversation."""
        if not await self._may_change():
            return
        self._app.push_screen(SessionPicker(self._app.conversation), self._go_on_with)

    def _go_on_with(self, session_id: str | None) -> None:
        if session_id:
            self._app.run_worker(self._dispatch("resume", session_id))

    async def rewind(self) -> None:
        """Go back to something that was said."""
        if not await self._may_change():
            return
        found = await self.ask("session.prompts")
        if found is not None:
            self._app.push_screen(RewindDialog(found["prompts"]), self._step)

    def _step(self, step: RewindAction | None) -> None:
        if step is not None:
            self._app.run_worker(self._take(step))

    async def _take(self, step: RewindAction) -> None:
        if step.action == "redo":
            await self._dispatch("redo", "")
            return
        method = "session.rewind" if step.action == "back" else "session.branch"
        prompts = await self.ask("session.prompts")
        found = await self.ask(method, message_id=step.message_id)
        if found is None or prompts is None:
            return
        if not await self._app.showing.reload():
            return
        said = {one["message_id"]: one["text"] for one in prompts["prompts"]}
        self._app.prompt.fill(said.get(step.message_id, ""))
        text = "Rewound. /redo restores it." if step.action == "back" else "Switched to the branch."
        await self._app.note(text)

    async def family(self) -> None:
        """See the branches, and go to one."""
        if not await self._may_change():
            return
        found = await self.ask("session.tree")
        if found is not None:
            current = self._app.conversation.session_id
            self._app.push_screen(BranchTree(found["sessions"], current), self._go_on_with)

    async def _may_change(self) -> bool:
        if self._app.is_busy:
            await self._app.note(BUSY, is_error=True)
        return not self._app.is_busy
