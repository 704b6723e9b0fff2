"""Taking secrets out of what is given away.

Text is searched as it reads: JSON is opened, its texts are searched one by one and by
their names, and it is closed again, so that a secret is not missed for its escapes and
JSON stays JSON.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

from hermes_core.messages import has_lone_surrogate
from hermes_state.messages.codec import JSON_MARK
from hermes_state.portable.secret_patterns import SECRET_NAME, SECRETS

DEEPEST: Final = 16
SHORTEST: Final = 4
MOST_PASSES: Final = 5
# Columns that name things instead of saying something.
NAMES: Final = frozenset(
    {"id", "role", "source", "parent_session_id", "tool_call_id", "tool_name", "session_key",
     "end_reason", "finish_reason", "display_kind", "model", "billing_provider", "title_source",
     "hermes_uid", "reason"}
)  # fmt: skip
_PLACEHOLDER: Final = re.compile(r"(?i)[$<{*\[%(]|x{3}|\.{3}|your|redacted|none$|null$")


class Redactor:
    """Replaces every secret it recognises by `[redacted:kind]`."""

    def row(self, row: dict[str, Any]) -> dict[str, Any]:
        """A row with its texts redacted."""
        return {
            name: value if name in NAMES else self._column(value) for name, value in row.items()
        }

    def _column(self, value: Any) -> Any:
        if isinstance(value, bytes):  # another program's; replaced only if there is a secret in it
            text = value.decode("utf-8", "replace")
            hidden = self.text(text)
            return value if hidden == text else hidden
        return self.stored(value) if isinstance(value, str) else value

    def stored(self, text: str) -> str:
        """The text of a column, which may be marked as JSON."""
        if text.startswith(JSON_MARK):
            return JSON_MARK + self._text(text[len(JSON_MARK) :], 0, is_ascii=True)
        return self.text(text)

    def text(self, text: str) -> str:
        """A text without its secrets; JSON in it stays JSON."""
        return self._text(text, 0, is_ascii=False)

    def value(self, value: Any) -> Any:
        """A decoded value without its secrets."""
        return self._value(value, 0)

    def _text(self, text: str, depth: int, *, is_ascii: bool) -> str:
        if text[:1] in ("{", "[") and depth < DEEPEST:
            try:
                opened = json.loads(text)
            except (ValueError, RecursionError):
                return redact(text)
            closed = self._value(opened, depth + 1)
            if closed == opened:
                return text
            closed_text = json.dumps(closed, ensure_ascii=is_ascii)
            return json.dumps(closed) if has_lone_surrogate(closed_text) else closed_text
        return redact(text)

    def _value(self, value: Any, depth: int) -> Any:
        if isinstance(value, str):
            return self._text(value, depth, is_ascii=False)
        if depth >= DEEPEST:
            return value
        if isinstance(value, list):
            return [self._value(each, depth + 1) for each in value]
        if isinstance(value, dict):
            return {
                redact(name): self._named(name, each, depth + 1) for name, each in value.items()
            }
        return value

    def _named(self, name: str, value: Any, depth: int) -> Any:
        """A value whose name may say that it is a secret."""
        is_secret = (
            isinstance(value, str)
            and len(value) >= SHORTEST
            and SECRET_NAME.fullmatch(name[-200:]) is not None
            and _PLACEHOLDER.match(value) is None
        )
        return "[redacted:named-value]" if is_secret else self._value(value, depth)


def redact(text: str) -> str:
    """Plain text without its secrets."""
    for _ in range(MOST_PASSES):
        hidden = _pass(text)
        if hidden == text:
            break
        text = hidden  # what one pattern took away may have hidden another's beginning
    return text


def _pass(text: str) -> str:
    for secret in SECRETS:
        if any(hint in text for hint in secret.hints):
            label = f"[redacted:{secret.kind}]"
            text = secret.pattern.sub(lambda match, label=label: _replace(match, label), text)  # type: ignore[misc]
    return text


def _replace(match: re.Match[str], label: str) -> str:
    groups = [name for name, part in match.groupdict().items() if part is not None]
    if not groups:
        return label
    start, end = match.span(groups[0])
    whole, first = match.group(), match.start()
    return whole[: start - first] + label + whole[end - first :]
