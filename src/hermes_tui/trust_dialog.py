"""The question whether to trust files of the project that run commands or instruct the agent."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Button, Static

from hermes_agent.project.files import read_project
from hermes_agent.project.summary import TRUST_WARNING, describe_pending
from hermes_agent.project.trust import TrustStore
from hermes_core.human_format import plural
from hermes_core.terminal_text import clean, one_line
from hermes_tui.dialogs import TOO_EARLY, CardDialog
from hermes_tui.status import short_folder
from hermes_tui.submission import UNREACHABLE

if TYPE_CHECKING:
    from pathlib import Path

    from textual.app import ComposeResult

    from hermes_agent.project.trust import ProjectTrust
    from hermes_tui.app import HermesApp


class TrustDialog(CardDialog[bool]):
    """Lists each file and what it would run; Esc leaves the files ignored without a decision."""

    KEY_HELP = "arrows, PgUp, PgDn scroll · Tab, Enter choose · Esc: ask again later"
    ANSWER_KEYS = frozenset({"y", "n", "enter", "tab", "shift+tab", "left", "right"})
    BINDINGS: ClassVar = [
        Binding("y", "decide(True)"),
        Binding("n", "decide(False)"),
        Binding("escape", "postpone"),
        Binding("left", "app.focus_previous"),
        Binding("right", "app.focus_next"),
    ]

    def __init__(self, trust: ProjectTrust) -> None:
        super().__init__()
        self._trust = trust

    def compose(self) -> ComposeResult:
        """The folder, the files with their commands, the warning and the answers."""
        root = short_folder(one_line(str(self._trust.project.root)))
        lines = describe_pending(self._trust.pending)
        lines += [f"never used: {problem}" for problem in self._trust.project.problems]
        with Vertical(classes="dialog card"):
            yield Static("Trust these files of the project?", classes="reason")
            yield Static(Content(f"in {root}"), classes="dim")
            with VerticalScroll(id="files", can_focus=False):
                yield Static(Content(clean("\n".join(lines))), classes="command")
            yield Static(TRUST_WARNING, classes="dim")
            with Horizontal(classes="buttons"):
                yield Button("[u]y[/u]es, trust", id="yes", variant="success", compact=True)
                yield Button("[u]n[/u]o, ignore them", id="no", variant="error", compact=True)
            yield Static(TOO_EARLY, classes="keys")

    def on_mount(self) -> None:
        """Focus no, so that Enter alone trusts nothing."""
        self.query_one("#no").focus()

    def on_button_pressed(self, event: Button.Pressed) -> None:
        """Answer by mouse or Enter."""
        self.action_decide(event.button.id == "yes")

    def action_decide(self, is_trusted: bool) -> None:
        """Answer once."""
        if self.is_current:
            self.dismiss(is_trusted)

    def action_postpone(self) -> None:
        """Close the dialog without a decision."""
        if self.is_current:
            self.dismiss(None)


class TrustReview:
    """Asks about new and changed files: at the start, after turns, in another folder."""

    def __init__(self, app: HermesApp) -> None:
        self._app = app
        self._postponed: set[tuple[Path, str, str]] = set()

    async def ask_if_changed(self) -> None:
        """Ask about files that the user has not decided about, once for each content."""
        trust = await asyncio.to_thread(self._assess)
        if trust.must_ask and not _identities(trust) <= self._postponed and self._is_free:
            self._ask(trust)

    async def ask(self) -> None:
        """Ask about all files that are ignored, for the command /trust."""
        trust = await asyncio.to_thread(self._assess)
        if trust.pending:
            self._ask(trust)
            return
        trusted = "\n".join(f"{file.name}: trusted" for file in trust.trusted)
        await self._app.note(trusted or "This folder has no files that need trust.")

    @property
    def _is_free(self) -> bool:
        """Whether no turn runs and no dialog is open."""
        return not self._app.is_busy and len(self._app.screen_stack) == 1

    def _assess(self) -> ProjectTrust:
        return TrustStore().assess(read_project(self._app.conversation.folder))

    def _ask(self, trust: ProjectTrust) -> None:
        def decided(answer: bool | None) -> None:
            if answer is None:
                self._postponed |= _identities(trust)
            else:
                self._app.run_worker(self._apply(trust, is_trusted=answer))

        self._app.announce_question()
        self._app.push_screen(TrustDialog(trust), decided)

    async def _apply(self, trust: ProjectTrust, *, is_trusted: bool) -> None:
        """Store the decision about the files as they were shown, and use it."""
        store = TrustStore()
        if is_trusted:
            await asyncio.to_thread(store.trust, trust.project)
            count = plural(len(trust.project.files), "file")
            text = f"Trusted {count}. To undo it: hermes trust --revoke {trust.project.root}"
        else:
            await asyncio.to_thread(store.decline, trust)
            text = "Not trusted; the files stay ignored. /trust asks again."
        try:
            await asyncio.to_thread(self._app.conversation.rebuild)
        except UNREACHABLE as error:
            await self._app.note(str(error), is_error=True)
        await self._app.note(text)


def _identities(trust: ProjectTrust) -> set[tuple[Path, str, str]]:
    root = trust.project.root
    return {
        (root, item.file.name, item.file.digest) for item in trust.pending if not item.is_declined
    }
