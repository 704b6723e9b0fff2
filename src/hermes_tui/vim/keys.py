"""The keys of insert and normal mode."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_tui.vim.motions import (
    MOTIONS,
    Motion,
    TextRange,
    clamp,
    find_character,
    first_text,
    line_end,
    line_number,
    line_start,
    lines_around,
    text_object,
)

if TYPE_CHECKING:
    from collections.abc import Callable

OPERATORS: Final = frozenset("dcy")
PREFIXES: Final = frozenset("gfFtTr")
ALIASES: Final = {"space": "l", " ": "l", "backspace": "h"}
SHORT_FORMS: Final = {"x": "dl", "X": "dh", "D": "d$", "C": "c$", "s": "cl", "S": "cc", "Y": "yy"}


class VimMode(Enum):
    """What the keys mean."""

    INSERT = "INSERT"
    NORMAL = "NORMAL"


class TextEdit(NamedTuple):
    """What a key does: replace `[start:end]` by *text*, and put the cursor somewhere."""

    cursor: int
    start: int = 0
    end: int = 0
    text: str = ""
    command: str = ""  # `undo`, `earlier` or `later`, of the input itself

    @property
    def is_edit(self) -> bool:
        """Whether the text changes."""
        return bool(self.text) or self.start != self.end

    def apply(self, text: str) -> str:
        """The text after the change."""
        return text[: self.start] + self.text + text[self.end :]


@dataclass
class PendingCommand:
    """The part of a command that was typed so far."""

    count: str = ""
    operator: str = ""
    operator_count: str = ""
    prefix: str = ""
    keys: str = ""

    @property
    def times(self) -> int:
        """The count of the motion, with that of the operator."""
        return int(self.count or 1) * int(self.operator_count or 1)


class InsertedText(NamedTuple):
    """What surrounds the text that is typed in insert mode, and the keys that led there."""

    keys: str
    before: str
    after: str


class VimKeys:
    """Maps keys to changes; holds the mode, the register and the last change."""

    def __init__(self) -> None:
        self.mode = VimMode.INSERT
        self._pending = PendingCommand()
        self._register = ""
        self._is_register_lines = False
        self._found = ("", "")
        self._inserting: InsertedText | None = None
        self._last_change = ("", "")  # keys, and what was typed after them
        self._commands: dict[str, Callable[[str, int, int], TextEdit | None]] = {
            "i": lambda text, cursor, _count: self._insert(text, cursor),
            "a": lambda text, cursor, _count: self._insert(
                text, min(cursor + 1, line_end(text, cursor))
            ),
            "I": lambda text, cursor, _count: self._insert(text, first_text(text, cursor)),
            "A": lambda text, cursor, _count: self._insert(text, line_end(text, cursor)),
            "o": lambda text, cursor, _count: self._open(text, line_end(text, cursor), after=True),
            "O": lambda text, cursor, _count: self._open(
                text, line_start(text, cursor), after=False
            ),
            "p": lambda text, cursor, count: self._put(text, cursor, count, is_before=False),
            "P": lambda text, cursor, count: self._put(text, cursor, count, is_before=True),
            "u": lambda _text, cursor, _count: TextEdit(cursor, command="undo"),
            "~": self._swap_case,
            "J": self._join,
            ".": self._repeat_change,
        }

    def is_inserting(self) -> bool:
        """Whether keys are text."""
        return self.mode is VimMode.INSERT

    def reset(self) -> None:
        """Return to insert mode, for a new input."""
        self.mode, self._pending, self._inserting = VimMode.INSERT, PendingCommand(), None

    def press(self, key: str, text: str, cursor: int) -> TextEdit | None:
        """What a key does; None if the input handles it as without vim keys."""
        if key == "escape":
            return self._escape(text, cursor)
        key = ALIASES.get(key, key)
        if self.is_inserting() or len(key) != 1:
            self._pending = PendingCommand()
            return None
        pending = self._pending
        pending.keys += key
        change = self._read(key, text, cursor)
        if change is None and self._is_incomplete(key):
            return TextEdit(cursor)
        self._pending = PendingCommand()
        if change is None:
            return TextEdit(cursor)
        if change.is_edit and not self.is_inserting() and key != ".":
            self._last_change = (pending.keys, "")
        if self.is_inserting():
            after = change.apply(text)
            self._inserting = InsertedText(
                pending.keys, after[: change.cursor], after[change.cursor :]
            )
            return change
        return change._replace(cursor=clamp(change.apply(text), change.cursor))

    def _is_incomplete(self, key: str) -> bool:
        pending = self._pending
        return bool(pending.prefix or pending.count.endswith(key) or pending.operator == key)

    def _escape(self, text: str, cursor: int) -> TextEdit:
        self._pending = PendingCommand()
        if self.mode is VimMode.NORMAL:
            return TextEdit(cursor)
        self.mode = VimMode.NORMAL
        inserting, self._inserting = self._inserting, None
        if inserting is not None:
            before, after = inserting.before, inserting.after
            size = len(before) + len(after)
            if text.startswith(before) and text.endswith(after) and len(text) >= size:
                typed = text[len(before) : len(text) - len(after)]
                self._last_change = (inserting.keys, typed)
        return TextEdit(clamp(text, max(cursor - 1, line_start(text, cursor))))

    # Reading a command

    def _read(self, key: str, text: str, cursor: int) -> TextEdit | None:
        """Read one more key; the change if the command is complete."""
        pending = self._pending
        if pending.prefix:
            return self._with_prefix(pending.prefix, key, text, cursor)
        if self._is_part(key):
            return None
        if key in SHORT_FORMS and not pending.operator:
            pending.operator = SHORT_FORMS[key][0]
            key = SHORT_FORMS[key][1]
        if key == pending.operator:
            last = MOTIONS["j"](text, cursor, pending.times - 1)
            end = last.target if last is not None else len(text)
            return self._operate(text, cursor, lines_around(text, cursor, end))
        if key in MOTIONS:
            return self._move_by(key, text, cursor)
        return self._command(key, text, cursor)

    def _is_part(self, key: str) -> bool:
        """Note a count, an operator or a prefix; whether the key is one."""
        pending = self._pending
        if key.isdigit() and (key != "0" or pending.count):
            pending.count += key
        elif key in OPERATORS and not pending.operator:
            pending.operator, pending.operator_count, pending.count = key, pending.count, ""
        elif key in PREFIXES or (pending.operator and key in "ia"):
            pending.prefix = key
        else:
            return False
        return True

    def _command(self, key: str, text: str, cursor: int) -> TextEdit | None:
        pending = self._pending
        if key in ";,":
            return self._find_again(text, cursor, is_reverse=key == ",")
        if key == "G":
            number = int(pending.count) if pending.count else text.count("\n") + 1
            return self._move(text, cursor, Motion(line_number(text, number), is_lines=True))
        command = None if pending.operator else self._commands.get(key)
        return command(text, cursor, pending.times) if command is not None else None

    def _with_prefix(self, prefix: str, key: str, text: str, cursor: int) -> TextEdit | None:
        pending = self._pending
        pending.prefix = ""
        if prefix == "r":
            end = cursor + pending.times
            if pending.operator or end > line_end(text, cursor):
                return TextEdit(cursor)
            return TextEdit(end - 1, cursor, end, key * pending.times)
        if prefix == "g":
            motion = Motion(line_number(text, int(pending.count or 1)), is_lines=True)
            return self._move(text, cursor, motion) if key == "g" else TextEdit(cursor)
        if prefix in "ia":
            found = text_object(text, cursor, prefix, key)
            return TextEdit(cursor) if found is None else self._operate(text, cursor, found)
        self._found = (prefix, key)
        return self._move(
            text, cursor, find_character(text, cursor, prefix, key, self._pending.times)
        )

    def _find_again(self, text: str, cursor: int, *, is_reverse: bool) -> TextEdit:
        key, character = self._found
        if not key:
            return TextEdit(cursor)
        key = key.swapcase() if is_reverse else key
        # `t` stops before the character that it has found already.
        begin = cursor + {"t": 1, "T": -1}.get(key, 0)
        motion = find_character(text, begin, key, character, self._pending.times)
        return self._move(text, cursor, motion)

    # Motions and operators

    def _move_by(self, key: str, text: str, cursor: int) -> TextEdit:
        pending = self._pending
        is_on_word = cursor < len(text) and not text[cursor].isspace()
        if pending.operator == "c" and key in "wW" and is_on_word:
            # `cw` leaves the blank after the word.
            motion = MOTIONS[{"w": "e", "W": "E"}[key]](text, cursor - 1, pending.times)
        else:
            motion = MOTIONS[key](text, cursor, pending.times)
        if motion is None and not pending.operator:
            return TextEdit(cursor, command="later" if key == "j" else "earlier")
        if motion is not None and pending.operator and key in "wW" and not motion.is_inclusive:
            motion = Motion(_without_line_break(text, cursor, motion.target))
        return self._move(text, cursor, motion)

    def _move(self, text: str, cursor: int, motion: Motion | None) -> TextEdit:
        """Move the cursor, or apply the operator to what lies between."""
        if motion is None:
            return TextEdit(cursor)
        if not self._pending.operator:
            return TextEdit(motion.target)
        start, end = sorted((cursor, motion.target))
        if motion.is_lines:
            return self._operate(text, cursor, lines_around(text, start, end))
        end += motion.is_inclusive
        return self._operate(text, cursor, TextRange(start, min(end, len(text))))

    def _operate(self, text: str, cursor: int, part: TextRange) -> TextEdit:
        operator = self._pending.operator
        self._register = text[part.start : part.end]
        self._is_register_lines = part.is_lines
        if operator == "y":
            return TextEdit(cursor if part.is_lines else part.start)
        if operator == "c":
            self.mode = VimMode.INSERT
            return TextEdit(part.start, part.start, part.end)
        if not part.is_lines:
            return TextEdit(part.start, part.start, part.end)
        start, end = part.start, part.end
        if end < len(text):
            end += 1
        elif start > 0:
            start -= 1
        left = text[:start] + text[end:]
        return TextEdit(first_text(left, min(start, len(left))), start, end)

    # Commands

    def _insert(self, _text: str, cursor: int) -> TextEdit:
        self.mode = VimMode.INSERT
        return TextEdit(cursor)

    def _open(self, _text: str, place: int, *, after: bool) -> TextEdit:
        self.mode = VimMode.INSERT
        return TextEdit(place + after, place, place, "\n")

    def _put(self, text: str, cursor: int, count: int, *, is_before: bool) -> TextEdit:
        if not self._register:
            return TextEdit(cursor)
        if self._is_register_lines:
            lines = "\n".join([self._register] * count)
            if is_before:
                start = line_start(text, cursor)
                return TextEdit(start, start, start, f"{lines}\n")
            end = line_end(text, cursor)
            return TextEdit(end + 1, end, end, f"\n{lines}")
        place = cursor if is_before else min(cursor + 1, line_end(text, cursor))
        added = self._register * count
        return TextEdit(place + len(added) - 1, place, place, added)

    def _swap_case(self, text: str, cursor: int, count: int) -> TextEdit:
        end = min(cursor + count, line_end(text, cursor))
        return TextEdit(end, cursor, end, text[cursor:end].swapcase())

    def _join(self, text: str, cursor: int, _count: int) -> TextEdit:
        end = line_end(text, cursor)
        if end == len(text):
            return TextEdit(cursor)
        following = first_text(text, end + 1)
        return TextEdit(end, end, following, " ")

    def _repeat_change(self, text: str, cursor: int, _count: int) -> TextEdit:
        """Apply the keys of the last change again."""
        (keys, typed), self._pending = self._last_change, PendingCommand()
        after, place = text, cursor
        for key in keys:
            change = self.press(key, after, place)
            if change is not None:
                after, place = change.apply(after), change.cursor
        if self.is_inserting():
            after = after[:place] + typed + after[place:]
            change = self._escape(after, place + len(typed))
            place = change.cursor
        self._last_change = (keys, typed)
        return TextEdit(place, 0, len(text), after) if after != text else TextEdit(cursor)


def _without_line_break(text: str, cursor: int, target: int) -> int:
    """The end of `dw` on the last word of a line: the line break stays."""
    passed = text[cursor:target]
    blanks = passed[len(passed.rstrip()) :]
    return target - len(blanks) + blanks.index("\n") if "\n" in blanks else target
