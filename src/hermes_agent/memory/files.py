"""The agent's long-term memory: two small files.

MEMORY.md has facts about the work, USER.md about the user. Their size is limited because
both are included in every prompt. Entries are separated by a line with a single `§`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from hermes_agent.tools.base import ToolError
from hermes_core.atomic_files import folder_locked, write_atomically
from hermes_core.paths import hermes_home
from hermes_state.files import memory_name

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from hermes_state.files import FileRepository

Target = Literal["memory", "user"]
SEPARATOR = "\n§\n"


class MemoryKind(NamedTuple):
    """One of the two files."""

    name: str
    characters: int


MEMORY_KINDS: dict[str, MemoryKind] = {
    "memory": MemoryKind("MEMORY.md", 2_200),
    "user": MemoryKind("USER.md", 1_375),
}


class MemoryConflictError(ToolError):
    """A file has other entries than the ones that a person has seen."""


class MemoryFiles:
    """The two files; concurrent changes by several processes are safe.

    With *shared*, they are in the database, and the folder has a copy of what was changed here.
    """

    def __init__(self, folder: Path | None = None, shared: FileRepository | None = None) -> None:
        self._folder = folder or hermes_home() / "memories"
        self._shared = shared

    def path(self, target: str) -> Path:
        """The path of a file."""
        return self._folder / MEMORY_KINDS[target].name

    def entries(self, target: str) -> list[str]:
        """The entries of a file."""
        stored = self._shared.get(self._name(target)) if self._shared is not None else None
        return self._local_entries(target) if stored is None else _split(stored.decode())

    def _local_entries(self, target: str) -> list[str]:
        try:
            return _split(self.path(target).read_text(errors="replace"))
        except FileNotFoundError:
            return []

    def _name(self, target: str) -> str:
        """The name of a file in the database."""
        return memory_name(self.path(target))

    def add(self, target: str, text: str) -> list[str]:
        """Add an entry, unless it exists."""

        def change(entries: list[str]) -> list[str]:
            return entries if text in entries else [*entries, text]

        return self._change(target, change)

    def replace(self, target: str, old: str, text: str) -> list[str]:
        """Replace the one entry that contains *old*."""

        def change(entries: list[str]) -> list[str]:
            index = _find_entry(entries, old)
            return [*entries[:index], text, *entries[index + 1 :]]

        return self._change(target, change)

    def remove(self, target: str, old: str) -> list[str]:
        """Remove the one entry that contains *old*."""

        def change(entries: list[str]) -> list[str]:
            index = _find_entry(entries, old)
            return [*entries[:index], *entries[index + 1 :]]

        return self._change(target, change)

    def rewrite(self, target: str, seen: list[str], entries: list[str]) -> list[str]:
        """Replace the entries that a person has *seen*; refuse if the file has others now."""
        wanted = [part for entry in entries for part in _split(entry)]

        def change(before: list[str]) -> list[str]:
            if before != seen:
                raise MemoryConflictError(
                    f"{MEMORY_KINDS[target].name} was changed meanwhile; nothing was saved."
                )
            return list(dict.fromkeys(wanted))

        return self._change(target, change)

    def _change(self, target: str, change: Callable[[list[str]], list[str]]) -> list[str]:
        def changed(before: list[str]) -> list[str]:
            after = change(before)
            _check_limit(target, before, after)
            return after

        with folder_locked(self._folder):
            if self._shared is None:
                before = self._local_entries(target)
                after = changed(before)
            else:
                before, after = self._change_shared(self._shared, target, changed)
            if after != before:
                write_atomically(self.path(target), SEPARATOR.join(after) + "\n")
        return after

    def _change_shared(
        self,
        shared: FileRepository,
        target: str,
        change: Callable[[list[str]], list[str]],
    ) -> tuple[list[str], list[str]]:
        """Change a file in the database; the first change starts with the local file."""
        found: list[list[str]] = []

        def replace(stored: bytes | None) -> bytes:
            before = self._local_entries(target) if stored is None else _split(stored.decode())
            found.append(before)
            return f"{SEPARATOR.join(change(before))}\n".encode()

        after = _split(shared.change(self._name(target), replace).decode())
        return found[-1], after


def _split(content: str) -> list[str]:
    parts = f"\n{content.strip()}\n".replace("\r\n", "\n").split(SEPARATOR)
    return [part.strip() for part in parts if part.strip()]


def used_characters(entries: list[str]) -> int:
    """The number of characters used by the entries."""
    return len(SEPARATOR.join(entries))


def _check_limit(target: str, before: list[str], after: list[str]) -> None:
    """Enforce the limit; a file that is already too long may become shorter."""
    limit, size = MEMORY_KINDS[target].characters, used_characters(after)
    if size > limit and size > used_characters(before):
        raise ToolError(
            f"{MEMORY_KINDS[target].name} would have {size:,} characters; {limit:,} is the limit. "
            "Shorten the text, or replace or remove an entry first."
        )


def _find_entry(entries: list[str], old: str) -> int:
    if old in entries:
        return entries.index(old)
    matches = [index for index, entry in enumerate(entries) if old in entry]
    if len(matches) != 1:
        count = f"{len(matches)} entries contain" if matches else "No entry contains"
        raise ToolError(f"{count} {old[:80]!r}; `old` must be a piece of exactly one.")
    return matches[0]
