"""Slash commands: most run on the server, some belong to the terminal UI."""

from __future__ import annotations

import asyncio
import json
import tempfile
import time
from typing import TYPE_CHECKING, Final

from hermes_core.json_values import number_in, objects_in, text_in
from hermes_tui.file_commands import TuiFileCommands
from hermes_tui.messages import ToolRow
from hermes_tui.pickers import ModelPicker, SessionPicker
from hermes_tui.rewind import BranchTree, RewindDialog
from hermes_tui.submission import UNREACHABLE
from tui_gateway.protocol import (
    CommandResult,
    CommandSummary,
    ModelSummary,
    PromptSummary,
    RelatedSession,
    parse,
)

if TYPE_CHECKING:
    from hermes_core.json_values import JsonObject, JsonValue
    from hermes_tui.app import HermesApp
    from hermes_tui.rewind import RewindAction

CONVERSATION: Final = "conversation"  # /undo without files
TURN_RUNNING: Final = "A turn is running; wait for it, or stop it with Ctrl+C."
QUIT_COMMANDS: Final = frozenset({"/quit", "/exit", "/q"})


class TuiCommands:
    """Runs slash commands."""

    def __init__(self, app: HermesApp) -> None:
        self._app = app
        self._files = TuiFileCommands(app, self.call)

    def available(self) -> list[CommandSummary]:
        """All commands, as /help lists them."""
        return self._app.conversation.commands

    def is_quit(self, line: str) -> bool:
        """Whether a line is a quit command."""
        return line.lower().partition(" ")[0] in QUIT_COMMANDS

    async def run(self, line: str) -> None:
        """Run a command line."""
        name, _, argument = line[1:].partition(" ")
        name, argument = name.lower(), argument.strip()
        dialogs = {"rewind": self.rewind, "tree": self.family, "trust": self.ask_for_trust}
        if not argument:
            dialogs |= {"resume": self.pick, "sessions": self.pick, "model": self.pick_model}
        if name in dialogs:
            await dialogs[name]()
        elif name == "image":
            await self.attach(argument)
        elif name == "diff":
            await self._files.diff(argument)
        elif name == "checkpoints" and not argument:
            if await self._may_change():
                await self._files.pick()
        elif name == "undo" and (not argument or argument.isdigit()):
            await self.undo(int(argument or 1))
        elif self._app.is_busy and not self._is_for_busy(name):
            await self._app.note(TURN_RUNNING, is_error=True)
        else:
            self._app.run_worker(self._dispatch(name, argument))

    def _is_for_busy(self, name: str) -> bool:
        return any(
            command.while_busy and f"/{name}" in (command.name, *command.aliases)
            for command in self._app.conversation.commands
        )

    async def _dispatch(self, name: str, argument: str) -> None:
        app = self._app
        is_first = not app.is_busy
        if is_first:
            app.show_busy()
        result = await self.call("command.dispatch", name=name, arg=argument)
        if is_first:
            app.show_idle()
        if result is not None:
            await self._follow(parse(CommandResult, result))

    async def _follow(self, result: CommandResult) -> None:
        """Show the output of a command and apply its effects."""
        app = self._app
        if result.changed:
            await self._app.event_view.reload()
        if result.output:
            await app.note(result.output)
        if result.type == "prefill":
            app.prompt.suggest(result.message)
        elif result.type == "send":
            await app.submission.send(result.message)
        elif result.type == "copy":
            self._app.copy(result.message)
        elif result.type == "leave":
            app.action_leave()

    async def call(self, method: str, **params: JsonValue) -> JsonObject | None:
        """The result of a call; on failure None, and the error is shown."""
        try:
            return await asyncio.to_thread(self._app.conversation.call, method, **params)
        except UNREACHABLE as error:
            await self._app.note(str(error), is_error=True)
            return None

    # Commands of the terminal UI

    async def attach(self, path: str) -> None:
        """Attach an image to the next message."""
        result = await self.call("image.attach", path=path)
        if result is not None:
            self._app.status.attach(number_in(result, "count"))

    async def attach_pasted(self, data: bytes) -> None:
        """Attach a picture of the clipboard; the server reads it from a file."""
        with tempfile.NamedTemporaryFile(prefix="pasted-", suffix=".png") as file:
            file.write(data)
            file.flush()
            await self.attach(file.name)

    async def run_shell(self, command: str) -> None:
        """Run a shell line of the user and show its output."""
        row = ToolRow(f"! {command}")
        await self._app.transcript.add(row)
        self._app.run_worker(self._finish_shell(row, command))

    async def _finish_shell(self, row: ToolRow, command: str) -> None:
        started_at = time.monotonic()
        result = await self.call("shell.exec", command=command)
        if result is None:
            await row.remove()
            return
        shown = {"output": text_in(result, "stdout"), "exit_code": number_in(result, "code")}
        row.finish(json.dumps(shown), time.monotonic() - started_at)

    async def remember(self, text: str) -> None:
        """Add an entry to the memory of the agent."""
        result = await self.call("memory.add", text=text)
        if result is not None:
            await self._app.note(f"Remembered in {text_in(result, 'path')}")

    async def pick(self) -> None:
        """Choose another conversation."""
        if not await self._may_change():
            return
        self._app.push_screen(SessionPicker(self._app.conversation), self._resume)

    def _resume(self, session_id: str | None) -> None:
        if session_id:
            self._app.run_worker(self._dispatch("resume", session_id))

    async def ask_for_trust(self) -> None:
        """Ask about the files of the project that are ignored."""
        if await self._may_change():
            await self._app.trust_review.ask()

    async def undo(self, count: int) -> None:
        """Undo the last exchanges, after a question if they changed files."""
        if await self._may_change():
            line = f"{count} {CONVERSATION}"
            await self._files.restore(lambda: self._dispatch("undo", line), count=count)

    async def pick_model(self) -> None:
        """Choose another model."""
        if not await self._may_change():
            return
        self._app.push_screen(ModelPicker(self._load_models), self._use_model)

    def _load_models(self) -> list[ModelSummary]:
        found = self._app.conversation.call("model.list")
        return [parse(ModelSummary, row) for row in objects_in(found, "models")]

    def _use_model(self, name: str | None) -> None:
        if name:
            self._app.run_worker(self._dispatch("model", name))

    async def rewind(self) -> None:
        """Rewind to an earlier message."""
        if not await self._may_change():
            return
        result = await self.call("session.prompts")
        if result is not None:
            self._app.push_screen(RewindDialog(_prompts(result)), self._on_rewind_action)

    def _on_rewind_action(self, action: RewindAction | None) -> None:
        if action is None:
            return
        if action.action == "back":
            rewind = self._files.restore(
                lambda: self._apply_rewind(action), message_id=action.message_id
            )
            self._app.run_worker(rewind)
        else:
            self._app.run_worker(self._apply_rewind(action))

    async def _apply_rewind(self, action: RewindAction) -> None:
        if action.action == "redo":
            await self._dispatch("redo", "")
            return
        method = "session.rewind" if action.action == "back" else "session.branch"
        prompts = await self.call("session.prompts")
        result = await self.call(method, message_id=action.message_id)
        if result is None or prompts is None:
            return
        if not await self._app.event_view.reload():
            return
        texts = {prompt.message_id: prompt.text for prompt in _prompts(prompts)}
        self._app.prompt.suggest(texts.get(action.message_id, ""))
        text = (
            "Rewound. /redo restores it." if action.action == "back" else "Switched to the branch."
        )
        await self._app.note(text)

    async def family(self) -> None:
        """Show the branches and open one."""
        if not await self._may_change():
            return
        result = await self.call("session.tree")
        if result is not None:
            current = self._app.conversation.session_id
            sessions = [parse(RelatedSession, row) for row in objects_in(result, "sessions")]
            self._app.push_screen(BranchTree(sessions, current), self._resume)

    async def _may_change(self) -> bool:
        if self._app.is_busy:
            await self._app.note(TURN_RUNNING, is_error=True)
        return not self._app.is_busy


def _prompts(result: JsonObject) -> list[PromptSummary]:
    return [parse(PromptSummary, prompt) for prompt in objects_in(result, "prompts")]
