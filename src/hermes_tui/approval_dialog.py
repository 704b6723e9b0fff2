"""The approval card: what would run, why it is asked, where, and the answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from textual.binding import Binding
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Button, Input, Static

from hermes_agent.permissions.grants import RUN_PREFIX, check_rule
from hermes_agent.tools.prompter import ApprovalAnswer
from hermes_core.errors import UsageError
from hermes_core.terminal_text import clean, one_line
from hermes_tui.dialogs import TOO_EARLY, CardDialog, QuestionDialog
from hermes_tui.status import short_folder

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from tui_gateway.protocol import ApprovalQuestion

DIFF_STYLES: Final = {"+": "$success", "-": "$error", "@": "$accent"}


class ApprovalDialog(CardDialog[str], QuestionDialog):
    """Asks whether a command may run; Esc denies."""

    KEY_HELP = "arrows, PgUp, PgDn scroll · Tab, Enter choose · Esc denies"
    # The answer always has no key.
    ANSWER_KEYS = frozenset({"o", "s", "d", "r", "e", "enter", "left", "right", "tab", "shift+tab"})
    BINDINGS: ClassVar = [
        Binding("o", "answer('once')"),
        Binding("s", "answer('session')"),
        Binding("d,escape", "answer('deny')"),
        Binding("r", "edit('reason')"),
        Binding("e", "edit('rule')"),
        Binding("left", "app.focus_previous"),
        Binding("right", "app.focus_next"),
    ]

    def __init__(self, question: ApprovalQuestion) -> None:
        super().__init__(question.request_id)
        self._question = question
        self._rules = tuple(question.rules)
        self._is_rule_edited = False
        self._may_always = question.allow_permanent
        self._edited = ""  # what the input is for: `rule` or `reason`
        self._problem = ""  # of the edited rule

    def compose(self) -> ComposeResult:
        """The reason, the folder, the command or diff, the rule and the answers."""
        question = self._question
        with Vertical(classes="dialog card approval"):
            yield Static(Content(clean(question.description)), classes="reason")
            folder = short_folder(one_line(question.folder))
            yield Static(Content(f"in {folder}"), classes="dim")
            with VerticalScroll(id="command", can_focus=False):
                yield Static(self._command(), classes="command")
            yield Static(id="rule", classes="dim")
            yield Input(id="text", compact=True)
            with Horizontal(classes="buttons"):
                yield Button("[u]o[/u]nce", id="once", variant="success", compact=True)
                yield Button("[u]s[/u]ession", id="session", compact=True)
                if self._may_always:
                    yield Button("always", id="always", compact=True)
                yield Button("[u]d[/u]eny", id="deny", variant="error", compact=True)
            with Horizontal(classes="buttons"):
                yield Button("deny with [u]r[/u]eason", id="reason-button", compact=True)
                yield Button("[u]e[/u]dit rule", id="rule-button", compact=True)
            yield Static(TOO_EARLY, classes="keys")

    def on_mount(self) -> None:
        """Focus deny, so that Enter alone allows nothing; show the first risky line."""
        self.query_one("#text").display = False
        self._draw_rule()
        self.query_one("#deny").focus()
        self.call_after_refresh(self._show_risk)

    @property
    def is_typing(self) -> bool:
        """Whether the input for a rule or a reason is open."""
        return bool(self._edited)

    @property
    def hint(self) -> str:
        """What the keys do now, or what is wrong with the rule."""
        if not self._edited:
            return super().hint
        action = "deny" if self._edited == "reason" else "use this rule"
        return self._problem or f"Enter: {action} · Esc: back"

    def on_button_pressed(self, event: Button.Pressed) -> None:
        """Answer by mouse or Enter."""
        name = str(event.button.id)
        if name.endswith("-button"):
            self.action_edit(name.removesuffix("-button"))
        else:
            self.action_answer(name)

    def action_answer(self, choice: str) -> None:
        """Answer; while the input is open, Esc closes it."""
        if self._edited:
            self._close_input()
        elif choice != "always" or self._may_always:
            rules = self._rules if self._is_rule_edited and choice in ("session", "always") else ()
            self.answer(str(ApprovalAnswer(choice, rules)))

    def action_edit(self, name: str) -> None:
        """Open the input for the rule or the reason of a denial."""
        self._edited = name
        field = self.query_one("#text", Input)
        field.value = "\n".join(self._rules) if name == "rule" else ""
        field.placeholder = "tell the agent why" if name == "reason" else "rule"
        field.display = True
        field.focus()
        self.draw_hint()
        self.call_after_refresh(self.fit)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Deny with a reason, or take the edited rule over."""
        if self._edited == "reason":
            self.answer(str(ApprovalAnswer("deny", reason=one_line(event.value))))
            return
        try:
            self._rules = (check_rule(event.value),)
        except UsageError as error:
            self._problem = str(error)
            self.draw_hint()
            return
        self._is_rule_edited = True
        self._close_input()
        self._draw_rule()

    def _close_input(self) -> None:
        self._edited = self._problem = ""
        self.query_one("#text").display = False
        self.query_one("#deny").focus()

    def _command(self) -> Content:
        risky = set(self._question.risky_lines)
        pieces: list[tuple[str, str]] = []
        for number, line in enumerate(self._question.command.split("\n")):
            mark, style = ("▶", "bold $error") if number in risky else (" ", "")
            pieces.append((f"{mark} {clean(line)}\n", style))
        pieces += [
            (f"{clean(line)}\n", DIFF_STYLES.get(line[:1], ""))
            for line in self._question.diff.splitlines()
        ]
        pieces[-1] = (pieces[-1][0].rstrip("\n"), pieces[-1][1])
        return Content.assemble(*pieces)

    def _show_risk(self) -> None:
        """Scroll to the first risky line; lines above it may be wrapped."""
        risky = self._question.risky_lines
        area = self.query_one("#command", VerticalScroll)
        if not risky or area.max_scroll_y <= 0:
            return
        above = self._question.command.split("\n")[: risky[0]]
        columns = max(1, area.scrollable_content_region.width - 2)
        rows = sum(max(1, -(-(len(line) + 2) // columns)) for line in above)
        area.scroll_to(y=max(0, rows - 1), animate=False)

    def _draw_rule(self) -> None:
        name = "session and always allow" if self._may_always else "session allows"
        rules = ", ".join(one_line(rule) for rule in self._rules)
        if self._rules == (f"{RUN_PREFIX}{self._question.command}",):
            rules = "this exact command"
        self.query_one("#rule", Static).update(Content(f"{name}: {rules}"))
