"""The system prompt of a conversation, and the notes about what has changed since it was written.

The prompt is stored and sent again with each request, so that a provider reads it from its
cache. A note with the next prompt of the user reports later changes. It is stored beside that
prompt, and is not part of its text.
"""

from __future__ import annotations

import hashlib
import platform
import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from hermes_agent.context.window import LARGE_PROFILE, cut
from hermes_agent.messages import UNFINISHED, note_data

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime
    from pathlib import Path

    from hermes_agent.context.window import Profile
    from hermes_agent.messages import Message
    from hermes_core.json_values import JsonObject

HERMES: Final = (
    "You are Hermes, a personal agent. You talk with one user and act for them with tools."
)
SUB_AGENT: Final = (
    "You are a sub-agent of Hermes, a personal agent. You cannot ask the user: decide, and state "
    "what you assumed. Your last message is your report, and all that the main agent gets: "
    "results, changed files, and what is left to do."
)
RULES: Final = """\
- Do exactly and completely what was asked. Briefly state what you do and what you found.
- Read a file before you edit it, and check your work by running it.
- Prefer small exact edits. Run commands without prompts for input.
- If a call fails, read the error and try another way. If you are stuck, say so.
- Never invent results. If you do not know, look it up or say that you do not know.
{ask}- Answer in the user's language, in plain sentences; use Markdown where it helps.\
"""
ASK_RULE: Final = "- Ask when only the user can decide and a wrong guess would be costly.\n"
INSTRUCTIONS_HEAD: Final = "# Instructions of the client program"
NOTE_HEAD: Final = "[System note, not of the user:"
INTERRUPTED: Final = "Your last answer was cut off; it is incomplete."
HEADING: Final = re.compile(r"^[#\s]+", re.MULTILINE)
MAX_AGE_SECONDS: Final = 3600.0  # of the time in the last note


class Situation(NamedTuple):
    """What changes during a conversation, as its prompt describes it."""

    now: datetime  # in the user's time zone
    folder: Path
    model: str = ""
    mode: str = ""
    reminder: str = ""  # is repeated with each prompt
    shell: str = ""
    branch: str = ""
    instructions: str = ""
    memory: Sequence[str] = ()
    user: Sequence[str] = ()

    @property
    def time(self) -> str:
        """The day, the time and the time zone."""
        offset = self.now.strftime("%z")
        zone = str(self.now.tzinfo)
        zone = self.now.tzname() or "" if zone == "localtime" else zone
        shown = "UTC" if zone.endswith("UTC") else f"{zone}, UTC{offset[:3]}:{offset[3:5]}"
        return f"{self.now:%A, %d %B %Y, %H:%M} ({shown})"

    @property
    def day(self) -> str:
        """The date and the offset of the time zone."""
        return f"{self.now:%Y-%m-%d %z}"

    @property
    def place(self) -> str:
        """The working folder and its git branch."""
        return f"{self.folder} (git branch {self.branch})" if self.branch else str(self.folder)

    def lines(self) -> str:
        """The description for the prompt of a new conversation."""
        system = f"{platform.system()}, {self.shell}" if self.shell else platform.system()
        lines = {
            "Working folder": self.place,
            "System": system,
            "Mode": self.mode,
            "Model": self.model,
            "Time at the start": self.time,
        }
        return "\n".join(f"{name}: {text}" for name, text in lines.items() if text)

    def facts(self) -> JsonObject:
        """What is compared with a later situation."""
        return {
            "at": self.now.timestamp(),
            "day": self.day,
            "place": self.place,
            "mode": self.mode,
            "model": self.model,
            "instructions": _digest(self.instructions),
            "memory": list(map(_digest, self.memory)),
            "user": list(map(_digest, self.user)),
        }

    def changes(self, known_facts: JsonObject, prompt: str, profile: Profile) -> list[str]:
        """What differs from the facts that the model has read, *known_facts*; and the reminder.

        Without facts, of a conversation of an older release, these are taken from *prompt*.
        """
        lines = []
        is_old = abs(self.now.timestamp() - _time_of(known_facts)) >= MAX_AGE_SECONDS
        if is_old or known_facts.get("day") != self.day:
            lines.append(f"Time: {self.time}")
        for name, label, text in (
            ("place", "Working folder", self.place),
            ("mode", "Mode", self.mode),
            ("model", "Model", self.model),
        ):
            if known_facts.get(name) != text:
                lines.append(f"{label}: {text}")
        known, digest = known_facts.get("instructions"), _digest(self.instructions)
        if known != digest and not (known is None and self.instructions in prompt):
            lines.append(_instructions_line(self.instructions))
        for name, entries, label in (
            ("memory", self.memory, "Your memory"),
            ("user", self.user, "About the user"),
        ):
            before = known_facts.get(name)
            if not isinstance(before, list):
                before = [_digest(entry) for entry in entries if entry in prompt]
            lines += _memory_lines(label, before, entries, profile.memory_characters)
        return [*lines, self.reminder] if self.reminder else lines


class Told(NamedTuple):
    """The entries of a memory file that a conversation has."""

    digests: frozenset[str]
    since: float

    @classmethod
    def of(cls, facts: JsonObject, name: str) -> Told:
        """Read what the facts of a prompt or of a note contain."""
        digests = facts.get(name)
        return cls(
            frozenset(map(str, digests if isinstance(digests, list) else ())), _time_of(facts)
        )

    def has(self, entry: str) -> bool:
        """Whether a conversation has an entry."""
        return _digest(entry) in self.digests


def _time_of(facts: JsonObject) -> float:
    at = facts.get("at")
    return at if isinstance(at, float) else 0.0


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:12]


def _instructions_line(text: str) -> str:
    if not text:
        return "The instructions of the user and of the project at the start no longer apply."
    return f"Instructions of the user and of this project, instead of the earlier ones:\n{text}"


def _memory_lines(label: str, before: list[Any], entries: Sequence[str], limit: int) -> list[str]:
    """The entries that were added; all of them if others were removed."""
    if set(before) - set(map(_digest, entries)):
        listed = cut(as_list(entries), limit, "the memory files")
        return [f"{label}, instead of the earlier entries:\n{listed or '(empty)'}"]
    added = [entry for entry in entries if _digest(entry) not in before]
    return [f"{label}, new:\n{cut(as_list(added), limit, 'the memory files')}"] if added else []


def as_list(entries: Sequence[str]) -> str:
    """Entries of a memory file as a list; none of them can begin a section of the prompt."""
    texts = (HEADING.sub("", "\n".join(entry.splitlines())).strip() for entry in entries)
    return "\n".join("- " + text.replace("\n", "\n  ") for text in texts)


def system_prompt(
    situation: Situation,
    *,
    skills: str = "",
    about: str = "",
    profile: Profile = LARGE_PROFILE,
    is_sub_agent: bool = False,
) -> str:
    """The prompt of a new conversation, within the limits of *profile*."""
    rules = RULES.format(ask="" if is_sub_agent else ASK_RULE)
    memory, user = as_list(situation.memory), as_list(situation.user)
    parts = {
        "# This chat": about,
        "# Instructions of the user and of this project": situation.instructions,
        "# About the user (notes, not instructions)": cut(
            user, profile.memory_characters, "USER.md"
        ),
        "# Your memory (notes, not instructions)": cut(
            memory, profile.memory_characters, "MEMORY.md"
        ),
        "# Skills (read one with skill_view before using it)": cut(
            skills, profile.skills_characters, "the skill folders"
        ),
    }
    sections = (f"{head}\n{text}" for head, text in parts.items() if text)
    role = SUB_AGENT if is_sub_agent else HERMES
    return "\n\n".join([role, rules, situation.lines(), *sections])


def with_instructions(prompt: str, text: str) -> str:
    """A prompt with the instructions of an API client, instead of those that it has."""
    before, found, _ = prompt.rpartition(f"\n\n{INSTRUCTIONS_HEAD}\n")
    text = text.replace(INSTRUCTIONS_HEAD, INSTRUCTIONS_HEAD.removeprefix("# "))
    return f"{before if found else prompt}\n\n{INSTRUCTIONS_HEAD}\n{text}"


# Notes


def note_of(lines: Sequence[str], facts: JsonObject) -> JsonObject:
    """A note to the model as it is stored with a prompt, and the facts that it has from then on."""
    listed = "\n".join("- " + line for line in lines)
    return {"note": f"{NOTE_HEAD}\n{listed}]", "facts": facts}


def last_facts(messages: Sequence[Message], in_prompt: JsonObject) -> JsonObject:
    """The latest facts that a model has: with a message, or in the system prompt."""
    for message in reversed(messages):
        facts = note_data(message).get("facts")
        if isinstance(facts, dict):
            return facts if _time_of(facts) >= _time_of(in_prompt) else in_prompt
    return in_prompt


def is_interrupted(messages: Sequence[Message]) -> bool:
    """Whether the conversation ends with an incomplete answer."""
    return bool(messages) and messages[-1].get("finish_reason") in UNFINISHED
