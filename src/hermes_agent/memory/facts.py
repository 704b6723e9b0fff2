"""The agent's memory: facts in the store, and two files that list them.

A fact is a row with its evidence. The files are a view that people and hermes-agent may edit: a new
entry becomes a fact of the owner, a changed one supersedes, a removed one is rejected. What a fact
should have in its file and what the file has (`is_listed`) are noted apart, so that a crash between
the two is not taken for an edit.
"""

from __future__ import annotations

import functools
import logging
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeVar

from hermes_agent.memory.evidence import FactWords, OwnerMessage, owner_messages
from hermes_agent.memory.files import (
    MEMORY_KINDS,
    SEPARATOR,
    MemoryText,
    fitting,
    used_characters,
)
from hermes_agent.tools.base import ToolError
from hermes_core.atomic_files import folder_locked, write_atomically
from hermes_core.errors import UsageError
from hermes_core.messages import has_lone_surrogate
from hermes_core.paths import hermes_home
from hermes_state.facts import NewFact
from hermes_state.files import memory_name

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from hermes_state.facts import Author, Evidence, Fact, FactEditor, FactRepository
    from hermes_state.store import SessionDB

T = TypeVar("T")
log = logging.getLogger(__name__)
Target = Literal["memory", "user"]
MIN_EDITED: Final = 0.5  # similarity of an entry to the one that it replaces
MAX_OWN_CHARACTERS: Final = min(kind.characters for kind in MEMORY_KINDS.values())
MAX_FACT_CHARACTERS: Final = 1_000  # of one that a model proposes
MAX_FACTS: Final = 1_000  # active ones of a file
EDITED: Final = "edited in the file"
REMOVED: Final = "removed from the file"


class MemoryConflictError(ToolError):
    """A file has other entries than the ones that a person has seen."""


class Proposal(NamedTuple):
    """A fact that a person or a model wants to be remembered."""

    target: str
    text: str
    author: Author
    evidence: tuple[Evidence, ...] = ()
    replaces: str = ""  # a piece of the fact that it supersedes
    folder: str = ""  # of the project that it is about


class Remembered(NamedTuple):
    """What became of a proposal."""

    fact_id: int
    outcome: Literal["added", "merged", "superseded"]
    superseded: tuple[Fact, ...] = ()


class AgentMemory:
    """The facts of one person; concurrent changes by several processes are safe."""

    def __init__(self, db: SessionDB, folder: Path | None = None) -> None:
        self._db = db
        self._facts: FactRepository = db.facts
        self._is_local = db.engine.database.is_file
        self._folder = folder or hermes_home() / "memories"

    def path(self, target: str) -> Path:
        """The path of a file."""
        return self._folder / MEMORY_KINDS[target].name

    def file_name(self, target: str) -> str:
        """The name under which the facts of a file are stored."""
        return self.path(target).relative_to(hermes_home()).as_posix()

    def entries(self, target: str) -> list[str]:
        """The entries of a file, as people see them."""
        self.facts(target)
        return MemoryText(self._content(target)).entries

    def facts(self, target: str) -> list[Fact]:
        """All facts of a file, oldest first; edits by hand are taken over."""
        known = self._facts.of_file(self.file_name(target))
        try:
            is_in_step = _is_in_step(known, MemoryText(self._content(target)).entries, target)
            if is_in_step or self._db.engine.read_only:
                return known
            self._edit(target, "owner", lambda _editor: None)
        except (OSError, ToolError) as error:  # the facts are in the store; their file has to wait
            log.warning("the memory file was not compared: %s", error)
        return self._facts.of_file(self.file_name(target))

    def active(self, target: str) -> list[Fact]:
        """The facts that are believed, oldest first."""
        return [fact for fact in self.facts(target) if fact.state == "active"]

    def take_over(self, author: Author) -> None:
        """Store the entries of the files as facts of *author*, such as an import."""
        for target in MEMORY_KINDS:
            self._edit(target, author, lambda _editor: None)

    def said_in(self, session_id: str) -> list[OwnerMessage]:
        """What the user wrote in a conversation."""
        return owner_messages(self._db, session_id)

    # Changes

    def add(self, target: str, text: str) -> Remembered:
        """Store a fact that the owner states here and now."""
        return self.remember(Proposal(target, text, "owner"))

    def remember(self, proposal: Proposal) -> Remembered:
        """Store a fact: merged with one that says the same, superseding those it contradicts.

        Where newer words of the user contradict it, it is stored as superseded.
        """
        text = checked_entry(proposal.text, proposal.author)
        return self._edit(
            proposal.target, proposal.author, lambda editor: self._remember(editor, proposal, text)
        )

    def _remember(self, editor: FactEditor, proposal: Proposal, text: str) -> Remembered:
        file = self.file_name(proposal.target)
        known = editor.facts(file)
        said_at = max((each.said_at for each in proposal.evidence), default=None)
        words = FactWords.of(text)
        replaced = {_one_of(known, proposal.replaces).id} if proposal.replaces else set()
        for fact in known:
            same = fact.text == text or words.says_the_same(FactWords.of(fact.text))
            if same and fact.id not in replaced:
                if fact.state in ("active", "stale"):
                    editor.add_evidence(fact.id, proposal.evidence)
                    editor.change(fact, "said again", state="active")
                    return Remembered(fact.id, "merged")
                if fact.state == "rejected" and said_at is not None and said_at <= fact.changed_at:
                    raise ToolError(f"The user rejected this: fact {fact.id}.")
        active = [fact for fact in known if fact.state == "active"]
        if len(active) >= MAX_FACTS:
            raise ToolError(f"{MAX_FACTS} facts are the limit. Replace or remove one first.")
        against = [
            fact
            for fact in active
            if fact.id in replaced or words.contradicts(FactWords.of(fact.text))
        ]
        number = editor.add(_new_fact(file, proposal, text), proposal.evidence)
        winner = next((fact for fact in against if _wins(fact, said_at, editor)), None)
        if winner is not None:
            new = editor.get(number)
            reason = f"newer words of the user: fact {winner.id}"
            editor.change(new, reason, state="superseded", successor=winner.id)
            return Remembered(number, "superseded", (winner,))
        for fact in against:
            editor.change(
                fact, f"superseded by fact {number}", state="superseded", successor=number
            )
        return Remembered(number, "added", tuple(against))

    def forget(self, target: str, piece: str, author: Author) -> Fact:
        """Reject the one fact that contains a piece of text."""

        def reject(editor: FactEditor) -> Fact:
            fact = _one_of(editor.facts(self.file_name(target)), piece)
            return editor.change(fact, "rejected", state="rejected")

        return self._edit(target, author, reject)

    def set_state(self, fact: Fact, author: Author, *, is_active: bool) -> None:
        """Reject a fact, or believe one again."""
        state = "active" if is_active else "rejected"
        reason = "confirmed" if is_active else "rejected"
        self._change(fact, author, reason, state=state)

    def pin(self, fact: Fact, author: Author, *, is_pinned: bool) -> None:
        """Include a fact in each prompt, or no longer."""
        self._change(fact, author, "pinned" if is_pinned else "unpinned", is_pinned=is_pinned)

    def _change(self, fact: Fact, author: Author, reason: str, **values: object) -> None:
        self._edit(
            self.target_of(fact),
            author,
            lambda editor: editor.change(editor.get(fact.id), reason, **values),
        )

    def target_of(self, fact: Fact) -> str:
        """The file that lists a fact."""
        for target in MEMORY_KINDS:
            if self.file_name(target) == fact.file:
                return target
        raise UsageError(f"Fact {fact.id} belongs to another person's memory.")

    def undo(self, target: str, event: str) -> None:
        """Undo what was changed together."""
        self._edit(target, "owner", lambda editor: editor.undo(event), made_by="undo")

    def rewrite(self, target: str, seen: list[str], entries: list[str]) -> list[str]:
        """Replace the entries that a person has *seen*; refuse if the file has others now."""
        wanted = dict.fromkeys(
            part for entry in entries for part in MemoryText(entry.encode()).entries
        )

        def change(editor: FactEditor) -> None:
            facts = _by_text(editor.facts(self.file_name(target)))
            listed = [text for text in facts if _should_list(facts[text])]
            if set(listed) != set(seen):
                raise MemoryConflictError(
                    f"{MEMORY_KINDS[target].name} was changed meanwhile; nothing was saved."
                )
            _check_limit(target, listed, list(wanted))
            gone = [facts[text] for text in listed if text not in wanted]
            added = [text for text in wanted if text not in listed]
            self._take_edits(editor, target, gone, added, "owner")

        self._edit(target, "owner", change, order=list(wanted))
        return self.entries(target)

    # The prompt

    def chosen(self, target: str, cwd: Path | None, question: str) -> list[Fact]:
        """The facts for a new prompt, within the limit of the file, in a stable order.

        Pinned facts come first, then those of the folder and those that share words with the
        *question*, then the rest, latest first.
        """
        self._facts.check(with_text=False)
        facts = [fact for fact in self.active(target) if _fits(fact, cwd)]

        @functools.cache
        def stems(text: str) -> frozenset[str]:
            return frozenset(FactWords.of(text).stems)

        def order(fact: Fact) -> tuple[bool, bool, int, float]:
            shared = len(stems(question) & stems(fact.text))
            return not fact.is_pinned, not fact.folder, -shared, -fact.changed_at

        return _within_limit(target, facts, order)

    def current(
        self, target: str, cwd: Path | None, is_told: Callable[[str], bool], since: float
    ) -> list[Fact]:
        """The facts for a conversation that has some: those that it has, and newer ones.

        What it has stays, so that the provider's cache holds.
        """
        facts = [
            fact
            for fact in self.active(target)
            if is_told(fact.text) or (fact.changed_at > since and _fits(fact, cwd))
        ]
        return _within_limit(target, facts, lambda fact: (not is_told(fact.text), -fact.changed_at))

    def note_use(self, facts: Sequence[Fact]) -> None:
        """Count the use of facts in the prompt of a conversation."""
        self._facts.note_use(fact.id for fact in facts)

    # The files

    def _content(self, target: str) -> bytes:
        stored = None if self._is_local else self._db.files.get(memory_name(self.path(target)))
        return self._local_content(target) if stored is None else stored

    def _local_content(self, target: str) -> bytes:
        path = self.path(target)
        try:
            if path.exists() and not path.is_file():  # reading a pipe would wait
                raise ToolError(f"{path} is not a file. Rename it, and try again.")
            return path.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return b""
        except OSError as error:
            raise ToolError(f"{path} cannot be read: {error.strerror}.") from error

    def _edit(
        self,
        target: str,
        author: Author,
        work: Callable[[FactEditor], T],
        *,
        made_by: str = "",
        order: list[str] | None = None,
    ) -> T:
        """Take over edits of the file, change facts, and write the file, in an *order* if given."""
        with folder_locked(self._folder):
            local = self._local_content(target)
            result, after = self._store(target, author, work, local, made_by, order or [])
            while self._is_local and self._local_content(target) != local:  # edited meanwhile
                local = self._local_content(target)
                _, after = self._store(target, author, lambda _editor: None, local)
            if after != local:
                write_atomically(self.path(target), after)
            if self._is_local:
                self._facts.edit(author, lambda editor: self._note_listed(editor, target, after))
        return result

    def _store(
        self,
        target: str,
        author: Author,
        work: Callable[[FactEditor], T],
        local: bytes,
        made_by: str = "",
        order: Sequence[str] = (),
    ) -> tuple[T, bytes]:
        """Take over edits and change facts in the store; the content that the file should have."""

        def change(editor: FactEditor) -> tuple[T, bytes]:
            name = memory_name(self.path(target))
            shared = None if self._is_local else editor.shared_file(name)
            before = local if shared is None else shared
            self._reconcile(editor, target, MemoryText(before).entries, author)
            result = work(editor)
            text = self._listing(editor, target, before)
            text.arrange(order)
            after = before if text.entries == MemoryText(before).entries else text.content()
            if not self._is_local and after != shared:
                editor.put_shared_file(name, after)
                self._note_listed(editor, target, after)
            return result, after

        return self._facts.edit(made_by or author, change)

    def _reconcile(
        self, editor: FactEditor, target: str, entries: list[str], author: Author
    ) -> None:
        """Take over what was edited in the file since it was written."""
        facts = editor.facts(self.file_name(target))
        by_text = _by_text(facts)
        new = [text for text in entries if text not in by_text]
        for text in dict.fromkeys(entries):
            fact = by_text.get(text)
            if fact is not None and fact.state != "active" and not fact.is_listed:
                editor.change(fact, "added to the file again", state="active", successor=None)
        present = set(entries)
        gone = [
            fact
            for fact in facts
            if fact.is_listed and fact.state == "active" and fact.text not in present
        ]
        self._take_edits(editor, target, gone, list(dict.fromkeys(new)), author)
        editor.set_listed((fact.id for fact in gone), is_listed=False)

    def _take_edits(
        self,
        editor: FactEditor,
        target: str,
        gone: list[Fact],
        added: list[str],
        author: Author,
    ) -> None:
        """Entries that replace similar ones supersede them; other missing ones are rejected."""
        left = list(gone)
        known = _by_text(editor.facts(self.file_name(target)))
        for text in added:
            new = _new_fact(self.file_name(target), Proposal(target, text, author), text)
            edited, earlier = _most_similar(text, left), known.get(text)
            if edited is not None:
                new = new._replace(subject=edited.subject, folder=edited.folder)
            if earlier is None:
                number = editor.add(new, reason="" if edited is None else EDITED)
            else:
                number = earlier.id
                editor.change(earlier, "added again", state="active", successor=None)
            if edited is not None:
                left.remove(edited)
                editor.change(edited, EDITED, state="superseded", successor=number)
        for fact in left:
            editor.change(fact, REMOVED, state="rejected")

    def _listing(self, editor: FactEditor, target: str, before: bytes) -> MemoryText:
        """The file with the facts that belong in it; unchanged entries keep their bytes."""
        facts = editor.facts(self.file_name(target))
        text = MemoryText(before)
        active = [fact for fact in facts if fact.state == "active"]
        believed = {fact.text for fact in active}
        _replace_edited(text, facts)
        text.remove({entry for entry in text.entries if entry not in believed})
        missing = [fact for fact in active if fact.text not in set(text.entries)]
        missing.sort(key=lambda fact: (not fact.is_pinned, fact.created_by != "owner"))
        limit = MEMORY_KINDS[target].characters
        for fact in missing:
            entries = text.entries
            room = fitting([fact.text], limit, used_characters(entries))
            if not room and (fact.is_pinned or fact.created_by == "owner"):
                text.remove(_least_important(active, entries, fact, limit))
                entries = text.entries
                room = fitting([fact.text], limit, used_characters(entries))
            text.add(room)
        return text

    def _note_listed(self, editor: FactEditor, target: str, content: bytes) -> None:
        entries = set(MemoryText(content).entries)
        facts = editor.facts(self.file_name(target))
        for is_listed in (True, False):
            changed = (
                fact.id
                for fact in facts
                if fact.is_listed is not is_listed
                and (fact.text in entries and fact.state == "active") is is_listed
            )
            editor.set_listed(list(changed), is_listed=is_listed)


def checked_entry(text: str, author: Author = "owner") -> str:
    """A text that can be an entry of the memory; ToolError if it cannot."""
    entry = text.strip().replace("\r\n", "\n")
    if not entry:
        raise ToolError("`text` is empty.")
    if SEPARATOR in f"\n{entry}\n":
        raise ToolError("A line with only `§` separates entries; an entry cannot contain it.")
    if any(line.lstrip().startswith("#") for line in entry.splitlines()):
        raise ToolError("A line of an entry cannot begin with `#`: it would look like a heading.")
    limit = MAX_OWN_CHARACTERS if author == "owner" else MAX_FACT_CHARACTERS
    if len(entry) > limit:
        raise ToolError(f"{len(entry):,} characters: {limit:,} is the limit of a fact. Shorten it.")
    if has_lone_surrogate(entry):
        raise ToolError("The text contains characters that are not valid Unicode.")
    return entry


def _new_fact(file: str, proposal: Proposal, text: str) -> NewFact:
    if proposal.folder:
        return NewFact(file, "project", text, proposal.author, proposal.folder)
    subject = "user" if proposal.target == "user" else "machine"
    return NewFact(file, subject, text, proposal.author)  # type: ignore[arg-type]


def _by_text(facts: Sequence[Fact]) -> dict[str, Fact]:
    """Facts by their texts: the one that is believed, else the latest."""
    return {fact.text: fact for fact in sorted(facts, key=lambda each: each.state == "active")}


def _replace_edited(text: MemoryText, facts: Sequence[Fact]) -> None:
    """Put facts in the places of those that they supersede."""
    numbered, by_text = {fact.id: fact for fact in facts}, _by_text(facts)
    for entry in text.entries:
        fact = by_text.get(entry)
        successor = numbered.get(fact.successor or 0) if fact is not None else None
        if successor is None or fact is None or fact.state != "superseded":
            continue
        if successor.state == "active" and successor.text not in text.entries:
            text.replace(entry, successor.text)


def _within_limit(target: str, facts: list[Fact], order: Callable[[Fact], Any]) -> list[Fact]:
    """The most important facts that fit, in their own order."""
    limit = MEMORY_KINDS[target].characters
    if used_characters([fact.text for fact in facts]) <= limit:
        return facts
    taken = set(fitting((fact.text for fact in sorted(facts, key=order)), limit))
    return [fact for fact in facts if fact.text in taken]


def _should_list(fact: Fact) -> bool:
    return fact.state == "active" and fact.is_listed


def _is_in_step(facts: list[Fact], entries: list[str], target: str) -> bool:
    """Whether a file has what it was written with, and room for nothing more."""
    listed = {fact.text for fact in facts if _should_list(fact)}
    is_clean = all(fact.state == "active" for fact in facts if fact.is_listed)
    if listed != set(entries) or not is_clean:
        return False
    missing = (fact.text for fact in facts if fact.state == "active" and not fact.is_listed)
    return not fitting(missing, MEMORY_KINDS[target].characters, used_characters(entries))


def _one_of(facts: Sequence[Fact], piece: str) -> Fact:
    """The one active fact with a piece of text."""
    active = [fact for fact in facts if fact.state == "active"]
    matches = [fact for fact in active if fact.text == piece] or [
        fact for fact in active if piece in fact.text
    ]
    if len(matches) != 1:
        count = f"{len(matches)} entries contain" if matches else "No entry contains"
        raise ToolError(f"{count} {piece[:80]!r}; `old` must be a piece of exactly one.")
    return matches[0]


def _most_similar(text: str, facts: list[Fact]) -> Fact | None:
    """The fact that an entry replaces, if one is similar enough."""
    from difflib import SequenceMatcher  # noqa: PLC0415 - edits by hand are rare

    rated = [(SequenceMatcher(None, text, fact.text).ratio(), -fact.id, fact) for fact in facts]
    best = max(rated, default=None)
    return best[2] if best is not None and best[0] >= MIN_EDITED else None


def _said_at(fact: Fact, editor: FactEditor) -> float:
    """When a fact was last stated: by a message, or by the edit of a person."""
    sources = editor.sources([fact.id])
    return max((each.evidence.said_at for each in sources), default=fact.created_at)


def _wins(fact: Fact, said_at: float | None, editor: FactEditor) -> bool:
    """Whether a fact is kept against one that was said at a time; None is now."""
    return fact.is_pinned or (said_at is not None and _said_at(fact, editor) > said_at)


def _fits(fact: Fact, cwd: Path | None) -> bool:
    """Whether a fact is for a folder: those of other projects are not."""
    if not fact.folder or cwd is None:
        return not fact.folder
    return cwd.is_relative_to(fact.folder)


def _least_important(active: list[Fact], entries: list[str], wanted: Fact, limit: int) -> set[str]:
    """Entries to remove from the file for a pinned fact or one of the owner, if that is enough."""
    room = limit - used_characters(entries) - len(wanted.text) - len(SEPARATOR)
    removed: set[str] = set()
    for fact in sorted(active, key=lambda each: each.changed_at):
        if room >= 0:
            break
        is_listed = fact.text in entries and not fact.is_pinned
        if is_listed and (fact.created_by != "owner" or wanted.is_pinned):
            removed.add(fact.text)
            room += len(fact.text) + len(SEPARATOR)
    return removed if room >= 0 else set()


def _check_limit(target: str, before: list[str], after: list[str]) -> None:
    """Enforce the limit; a file that is already too long may become shorter."""
    limit, size = MEMORY_KINDS[target].characters, used_characters(after)
    if size > limit and size > used_characters(before):
        raise ToolError(
            f"{MEMORY_KINDS[target].name} would have {size:,} characters; {limit:,} is the limit. "
            "Shorten the text, or replace or remove an entry first."
        )
