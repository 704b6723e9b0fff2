"""The shell hooks in config.yaml, `.hermes/hooks.json` and `.claude/settings.json`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_core.json_values import object_in, objects_in, parse_object, text_in

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hermes_agent.project.files import ProjectFile
    from hermes_core.json_values import JsonObject

SECTION: Final = "hooks"
EVENTS: Final = (
    "SessionStart",
    "SessionEnd",
    "UserPromptSubmit",
    "PreToolUse",
    "PostToolUse",
    "Stop",
    "PreCompact",
)
# Events whose commands decide whether something happens: one that gives no answer denies.
DECIDING_EVENTS: Final = frozenset({"UserPromptSubmit", "PreToolUse"})
STRICT_KEY: Final = "strict"  # of the section in config.yaml: every failure denies
TIMEOUT_SECONDS: Final = 60.0
MAX_TIMEOUT_SECONDS: Final = 600.0
MATCH_ALL: Final = ("", "*")


class ShellHook(NamedTuple):
    """A command for an event."""

    event: str
    matcher: str  # a regular expression for the name of the tool, or for the reason
    command: str
    timeout_seconds: float
    source: str  # the file that it comes from
    is_project: bool = False

    def matches(self, *names: str) -> bool:
        """Whether the hook is for one of these names."""
        if self.matcher in MATCH_ALL:
            return True
        return any(re.fullmatch(self.matcher, name) for name in names if name)

    @property
    def label(self) -> str:
        """The hook in one line."""
        matcher = "" if self.matcher in MATCH_ALL else f" ({self.matcher})"
        return f"{self.event}{matcher}: {self.command}"


class ShellHooks(NamedTuple):
    """The hooks in order, and the entries that cannot be used."""

    hooks: tuple[ShellHook, ...] = ()
    problems: tuple[str, ...] = ()
    is_strict: bool = False

    def for_event(self, event: str, *names: str) -> list[ShellHook]:
        """The hooks of an event that match one of the names."""
        return [hook for hook in self.hooks if hook.event == event and hook.matches(*names)]

    def has(self, *events: str) -> bool:
        """Whether there is a hook for one of these events."""
        return any(hook.event in events for hook in self.hooks)


def parse_hooks(block: JsonObject, source: str, *, is_project: bool = False) -> ShellHooks:
    """The hooks in a mapping from events to groups."""
    hooks: list[ShellHook] = []
    problems = []
    for event, value in block.items():
        if event == STRICT_KEY and not is_project:
            continue
        if event not in EVENTS:
            problems.append(f"{source}: unsupported event {event!r}")
            continue
        if not isinstance(value, list):
            problems.append(f"{source}: {event} must be a list")
            continue
        for group in objects_in(block, event):
            matcher = text_in(group, "matcher")
            if not _is_pattern(matcher):
                problems.append(f"{source}: invalid matcher {matcher!r} of {event}")
                continue
            for entry in objects_in(group, "hooks"):
                if text_in(entry, "type", "command") != "command" or not text_in(entry, "command"):
                    problems.append(f"{source}: a hook of {event} is not a command")
                else:
                    command = text_in(entry, "command")
                    seconds = _seconds(entry)
                    hooks.append(ShellHook(event, matcher, command, seconds, source, is_project))
    is_strict = not is_project and block.get(STRICT_KEY) not in (None, False)
    return ShellHooks(tuple(hooks), tuple(problems), is_strict)


def parse_project_hooks(file: ProjectFile) -> ShellHooks:
    """The hooks in a file of a project: under `hooks`, or the whole of `hooks.json`."""
    document = parse_object(file.text)
    if document is None:
        return ShellHooks((), (f"{file.path}: not a JSON object",))
    is_nested = "hooks" in document or file.path.name != "hooks.json"
    block = object_in(document, "hooks") if is_nested else document
    return parse_hooks(block, str(file.path), is_project=True)


def combine(parts: Iterable[ShellHooks]) -> ShellHooks:
    """All hooks of several files; a command occurs once for an event and a matcher."""
    found: dict[tuple[str, str, str], ShellHook] = {}
    problems: list[str] = []
    is_strict = False
    for part in parts:
        problems += part.problems
        is_strict |= part.is_strict
        for hook in part.hooks:
            found.setdefault((hook.event, hook.matcher, hook.command), hook)
    return ShellHooks(tuple(found.values()), tuple(problems), is_strict)


def _is_pattern(matcher: str) -> bool:
    if matcher in MATCH_ALL:
        return True
    try:
        re.compile(matcher)
    except re.error:
        return False
    return True


def _seconds(entry: JsonObject) -> float:
    value = entry.get("timeout")
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value <= 0:
        return TIMEOUT_SECONDS
    return min(float(value), MAX_TIMEOUT_SECONDS)
