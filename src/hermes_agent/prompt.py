"""The system prompt: short, and the same byte for byte for the whole conversation.

What it says is fixed when the conversation begins and stored with it, so that providers
can keep it in their caches. What changes while talking does not belong here.
"""

from __future__ import annotations

import platform
import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

ROLE: Final = """\
You are Hermes, a personal agent. You talk with one person and act for them with tools.

- Do what was asked, completely, and nothing that was not. Say briefly what you do and found.
- Look before you change: read a file before editing it, and check your work by running it.
- Prefer small exact edits. Run commands without prompts for input; long ones in the background.
- A failed call is information: read the error, think, try another way, and say so if stuck.
- Never invent results. If you do not know, look it up or say that you do not know.
- Ask only when a choice is the person's to make and cannot be undone.
- Answer in the person's language, in plain sentences; Markdown where it helps.\
"""
LONGEST_NOTES: Final = 6000  # characters of AGENTS.md


def system_prompt(
    cwd: Path, *, memory: str = "", user: str = "", skills: str = "", today: str = ""
) -> str:
    """The prompt of a conversation that begins now, in *cwd*."""
    parts = [ROLE, _place(cwd, today or time.strftime("%A, %d %B %Y"))]
    notes = _notes(cwd)
    if notes:
        parts.append(f"# Notes of this folder (AGENTS.md)\n{notes}")
    if user:
        parts.append(f"# About the person\n{user}")
    if memory:
        parts.append(f"# What you remember\n{memory}")
    if skills:
        parts.append(f"# Skills (read one with skill_view before using it)\n{skills}")
    return "\n\n".join(parts)


def _place(cwd: Path, today: str) -> str:
    return f"Working folder: {cwd}\nSystem: {platform.system()}\nToday: {today}"


def _notes(cwd: Path) -> str:
    path = cwd / "AGENTS.md"
    try:
        text = path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
    if len(text) <= LONGEST_NOTES:
        return text
    return f"{text[:LONGEST_NOTES]}\n(cut; the rest is in {path})"
