"""Modal dialogs: questions of the agent, secrets, the list of keys, and the base of cards."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, ClassVar, Final, TypeVar

from textual.binding import Binding
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList, Static

from hermes_core.terminal_text import clean, fit, one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual import events
    from textual.app import ComposeResult

    from tui_gateway.protocol import ClarifyQuestion, SecretQuestion

KEYS: Final = """\
Enter        send (steers the current turn if one is running)
Ctrl+J       new line; also Alt+Enter, Shift+Enter where the terminal
             supports it, and a backslash at the end of a line
/ @ ! #      commands · mention a file · run a shell line · remember a line
Tab          complete; Up and Down select in the menu, Esc closes it
Up, Down     earlier inputs, while the input is empty
Ctrl+V       paste from the clipboard, also images
Ctrl+G       edit the input in $EDITOR
Shift+Tab    switch between the modes workspace and plan
Tab          with an empty input: move to tool calls; Enter expands one
PgUp, PgDn   scroll the conversation      Esc  back to the input
Ctrl+R       open another conversation    F3   rewind    F4  branches
Ctrl+T       dark or light colors         Ctrl+Z  suspend (fg returns)
drag         select; Ctrl+C copies. Shift+drag selects with the terminal
Ctrl+C       interrupt the turn, or clear the input; twice: quit
Ctrl+D       quit; a running turn continues in the background
F1           show these keys; /help lists commands, /copy copies"""
VIM_KEYS: Final = """
Esc          vim keys: normal mode; i a I A o O insert, Enter sends
             move: h j k l w b e 0 ^ $ gg G f t ; ,  (j, k: earlier inputs)
             change: d c y with a motion or iw i" i(, x s r ~ J p u ."""
ENTER_DELAY_SECONDS: Final = 0.5  # before Enter chooses an answer
SCROLL_KEYS: Final = frozenset({"up", "down", "pageup", "pagedown", "home", "end"})
MIN_VISIBLE_SECONDS: Final = 1.0  # before a dialog accepts keys
TYPING_PAUSE_SECONDS: Final = 0.5  # keys without a pause were meant for the input
TOO_EARLY: Final = "… wait a moment before answering"
FRAME_ROWS: Final = 4  # the border and the margin of what a card scrolls
MIN_SCROLLED_ROWS: Final = 3
MAX_LABEL_COLUMNS: Final = 200  # a list cuts lines at its own width
T = TypeVar("T")


class KeyDelay:
    """When a dialog that opened while the user typed accepts answers."""

    def __init__(self) -> None:
        self._visible_since = self._last_typed_at = time.monotonic()

    def restart(self) -> None:
        """The dialog has become visible."""
        self._visible_since = time.monotonic()

    def note_key(self, moment: float) -> None:
        """A key was pressed that is not an answer, or too early."""
        self._last_typed_at = moment

    def is_early(self, moment: float) -> bool:
        """Whether a key at that moment may be meant for the input."""
        return (
            moment - self._visible_since < MIN_VISIBLE_SECONDS
            or moment - self._last_typed_at < TYPING_PAUSE_SECONDS
        )

    @property
    def is_over(self) -> bool:
        """Whether answers are accepted now."""
        return not self.is_early(time.monotonic())


class QuestionDialog(ModalScreen[str]):
    """A question to the user; the answer is a text."""

    def __init__(self, request_id: str) -> None:
        super().__init__()
        self.request_id = request_id

    def answer(self, text: str) -> None:
        """Answer once; further keys before the dialog closes are ignored."""
        if self.is_current:
            self.dismiss(text)


class ClarifyDialog(QuestionDialog):
    """A question of the model, with choices and a free-text answer.

    It may open while the user types. What is typed goes to the answer, and Enter chooses
    nothing until the dialog has been visible for a moment.
    """

    BINDINGS: ClassVar = [Binding("escape", "skip")]

    def __init__(self, question: ClarifyQuestion) -> None:
        super().__init__(question.request_id)
        self._question = question.question
        self._choices = question.choices
        self._opened_at = time.monotonic()

    def compose(self) -> ComposeResult:
        """The question, the choices and the input."""
        with Vertical(classes="dialog"):
            yield Static(Content(clean(self._question)), classes="heading")
            if self._choices:
                yield OptionList(*map(Content, self._choices), compact=True)
            hint = "Type an answer; Esc to skip"
            yield Input(placeholder=hint, compact=True, select_on_focus=False)

    def on_mount(self) -> None:
        """Focus the choices, if any."""
        self.query_one(OptionList if self._choices else Input).focus()

    def on_key(self, event: events.Key) -> None:
        """Type an answer without leaving the choices first; ignore an Enter that is too early."""
        field = self.query_one(Input)
        if event.key == "enter":
            if event.time - self._opened_at < ENTER_DELAY_SECONDS:
                event.stop()
        elif event.is_printable and event.character and not field.has_focus:
            event.stop()
            field.focus()
            field.insert_text_at_cursor(event.character)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Answer with a choice."""
        self.answer(self._choices[event.option_index])

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Answer with typed text."""
        if event.value.strip():
            self.answer(event.value.strip())

    def action_skip(self) -> None:
        """Skip the question."""
        self.answer("")


class SecretDialog(QuestionDialog):
    """Asks for a secret; the input is hidden."""

    BINDINGS: ClassVar = [Binding("escape", "skip")]

    def __init__(self, question: SecretQuestion) -> None:
        super().__init__(question.request_id)
        self._prompt = question.prompt

    def compose(self) -> ComposeResult:
        """The purpose and the input."""
        with Vertical(classes="dialog"):
            yield Static(Content(clean(self._prompt)), classes="heading")
            yield Input(placeholder="hidden input; Esc to cancel", password=True, compact=True)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Answer with the secret."""
        self.answer(event.value.strip())

    def action_skip(self) -> None:
        """Cancel."""
        self.answer("")


class ListDialog(ModalScreen[T]):
    """A list to choose a row from; Esc chooses nothing."""

    HEADING: ClassVar = ""
    KEYS: ClassVar = ""
    BINDINGS: ClassVar = [Binding("escape", "cancel")]

    def __init__(self, rows: Sequence[str], selected: int = 0) -> None:
        super().__init__()
        self._rows = [Content(fit(one_line(clean(row)), MAX_LABEL_COLUMNS)) for row in rows]
        self._selected = selected

    def compose(self) -> ComposeResult:
        """The list and the keys."""
        with Vertical(classes="dialog wide"):
            yield Static(self.HEADING, classes="heading")
            yield OptionList(*self._rows, compact=True)
            yield Static(Content(self.KEYS), classes="keys")

    def on_mount(self) -> None:
        """Select a row."""
        options = self.query_one(OptionList)
        options.highlighted = self._selected if self._rows else None
        options.focus()

    def action_cancel(self) -> None:
        """Choose nothing."""
        self.dismiss(None)


class CardDialog(ModalScreen[T]):
    """A card with something to scroll, and answers.

    It may open while the user types. Keys are ignored until it has been visible for a moment and
    typing has paused.
    """

    KEY_HELP: ClassVar = ""
    ANSWER_KEYS: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, *arguments: str) -> None:
        super().__init__(*arguments)
        self._delay = KeyDelay()

    @property
    def is_typing(self) -> bool:
        """Whether keys go to an input of the card."""
        return False

    @property
    def hint(self) -> str:
        """What the keys do now."""
        return self.KEY_HELP if self._delay.is_over else TOO_EARLY

    def on_mount(self) -> None:
        """Show when keys are accepted."""
        self.set_interval(0.1, self.draw_hint)
        self.fit()

    def on_resize(self) -> None:
        """Keep the answers visible at any size."""
        self.fit()
        self.call_after_refresh(self.fit)

    def on_screen_resume(self) -> None:
        """Restart the delay when the dialog becomes visible."""
        self._delay.restart()

    def on_key(self, event: events.Key) -> None:
        """Scroll, and ignore keys that were meant for the input."""
        if event.key == "escape" or self.is_typing:
            return
        if event.key in SCROLL_KEYS:
            self._scroll(event.key)
            event.stop()
        elif self._delay.is_early(event.time) or event.key not in self.ANSWER_KEYS:
            self._delay.note_key(event.time)
            self.draw_hint()
            event.stop()

    def fit(self) -> None:
        """Leave what is scrolled the rows that the other parts do not need."""
        area = self.query_one(VerticalScroll)
        rows = sum(part.size.height for part in self.query(".card > *") if part.display)
        room = self.app.size.height - (rows - area.size.height) - FRAME_ROWS
        area.styles.max_height = max(MIN_SCROLLED_ROWS, room)

    def draw_hint(self) -> None:
        """Show what the keys do now."""
        self.query_one(".keys", Static).update(Content(self.hint))

    def _scroll(self, key: str) -> None:
        area = self.query_one(VerticalScroll)
        page = max(1, area.size.height - 1)
        steps = {"up": -1, "down": 1, "pageup": -page, "pagedown": page}
        target = {"home": 0.0, "end": area.max_scroll_y}.get(key)
        area.scroll_to(
            y=area.scroll_y + steps.get(key, 0) if target is None else target, animate=False
        )


class KeysDialog(ModalScreen[None]):
    """The list of keys; any key that does not scroll closes it."""

    def __init__(self, *, has_vim_keys: bool = False) -> None:
        super().__init__()
        self._keys = KEYS + VIM_KEYS if has_vim_keys else KEYS

    def compose(self) -> ComposeResult:
        """The list."""
        with VerticalScroll(classes="dialog"):
            yield Static("Keys", classes="heading")
            yield Static(Content(self._keys))

    def on_key(self, event: events.Key) -> None:
        """Close the dialog."""
        if event.key in SCROLL_KEYS:
            return
        event.stop()
        self.dismiss(None)

    def on_click(self) -> None:
        """Close the dialog."""
        self.dismiss(None)
