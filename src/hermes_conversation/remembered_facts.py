"""What the agent remembers, as people see it: facts, why it believes them, and their history."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_agent.memory.evidence import FactWords
from hermes_agent.memory.files import MEMORY_KINDS
from hermes_core import human_format
from hermes_core.errors import UsageError
from hermes_core.messages import preview

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hermes_agent.memory.facts import AgentMemory
    from hermes_core.json_values import JsonObject
    from hermes_state.facts import Fact, FactChange, Source
    from hermes_state.store import SessionDB

AUTHORS: Final = {
    "owner": "you",
    "agent": "the agent, in a conversation",
    "review": "a review of a conversation",
    "import": "an import",
}
ABOUT_USER: Final = "About you"
HEADINGS: Final = {"user": ABOUT_USER, "machine": "About the work", "project": "About {}"}
NO_EVIDENCE: Final = {
    "owner": "You added it.",
    "import": "It was imported without its source.",
}


class ShownFact(NamedTuple):
    """A fact with its evidence, for display."""

    fact: Fact
    sources: list[Source]
    titles: dict[str, str]  # of the conversations with the evidence
    changes: list[FactChange]

    def as_fields(self) -> JsonObject:
        """The fact as JSON."""
        fact = self.fact
        return {
            **fact_fields(fact),
            "evidence": [
                {
                    "message_id": source.evidence.message_id,
                    "session_id": source.session_id,
                    "title": self.titles.get(source.session_id or ""),
                    "said_at": source.evidence.said_at,
                    "quotation": source.text,
                    "problem": source.problem,
                }
                for source in self.sources
            ],
            "changes": [
                {"at": change.made_at, "by": change.made_by, "what": change.reason}
                for change in self.changes
            ],
        }

    def why(self) -> str:
        """The quotations that the fact rests on, and how to open them."""
        if not self.sources:
            default = f"Added by {AUTHORS[self.fact.created_by]}."
            return NO_EVIDENCE.get(self.fact.created_by, default)
        return "\n".join(self._source_line(source) for source in self.sources)

    def _source_line(self, source: Source) -> str:
        day = human_format.date(source.evidence.said_at)
        if source.problem or source.session_id is None:
            return f"{day}  (the message was {source.problem or 'deleted'})"
        title = self.titles.get(source.session_id) or source.session_id
        command = f"sessions show {source.session_id} --around {source.evidence.message_id}"
        return f"{day}  “{preview(source.text, 200)}”\n            {title} · hermes {command}"

    def history(self) -> list[tuple[str, str]]:
        """The changes of the fact: when, and what."""
        return [
            (human_format.local(change.made_at), f"{change.reason} ({change.made_by})")
            for change in self.changes
        ]


def fact_fields(fact: Fact) -> JsonObject:
    """A fact as JSON, without its evidence."""
    return {
        "id": fact.id,
        "text": fact.text,
        "subject": fact.subject,
        "folder": fact.folder or None,
        "state": fact.state,
        "created_by": fact.created_by,
        "created_at": fact.created_at,
        "changed_at": fact.changed_at,
        "superseded_by": fact.successor,
        "is_pinned": fact.is_pinned,
        "is_in_file": fact.is_listed,
        "times_used": fact.times_used,
        "last_used_at": fact.last_used_at,
    }


def shown(db: SessionDB, fact: Fact) -> ShownFact:
    """A fact with its evidence and its history."""
    sources = db.facts.sources([fact.id])
    ids = {source.session_id for source in sources if source.session_id is not None}
    titles = {each: db.titles.get_session_title(each) or "" for each in ids}
    return ShownFact(fact, sources, titles, db.facts.changes(fact.id))


def all_facts(memory: AgentMemory) -> list[Fact]:
    """The facts of a memory, oldest first."""
    facts = [fact for target in MEMORY_KINDS for fact in memory.facts(target)]
    return sorted(facts, key=lambda fact: fact.id)


def fact_of(memory: AgentMemory, number: int) -> Fact:
    """A fact of a memory by its number."""
    found = next((fact for fact in all_facts(memory) if fact.id == number), None)
    if found is None:
        raise UsageError(f"There is no fact {number}. `hermes memory list --all` lists all.")
    return found


def numbered(memory: AgentMemory, word: str) -> Fact:
    """A fact by a number that was typed."""
    if not word.removeprefix("#").isdecimal():
        raise UsageError(f"{word or 'A number'!s} is needed: the number of a fact, as listed.")
    return fact_of(memory, int(word.removeprefix("#")))


def matching(facts: Iterable[Fact], query: str) -> list[Fact]:
    """Facts that share words with a query in any form, best first."""
    asked, typed = set(FactWords.of(query).stems), query.casefold()
    found = [
        ((shared, is_part), fact)
        for fact in facts
        if (shared := len(asked & set(FactWords.of(fact.text).stems)))
        + (is_part := typed in fact.text.casefold())
    ]
    return [fact for _, fact in sorted(found, key=lambda pair: pair[0], reverse=True)]


def heading(fact: Fact) -> str:
    """What a fact is about."""
    return HEADINGS[fact.subject].format(fact.folder)


def marks(fact: Fact) -> str:
    """What is special about a fact, in a few words."""
    found = [
        "" if fact.state == "active" else fact.state,
        f"by {fact.successor}" if fact.state == "superseded" and fact.successor else "",
        "pinned" if fact.is_pinned else "",
        "" if fact.is_listed or fact.state != "active" else "not in the file",
    ]
    return ", ".join(filter(None, found)).replace("superseded, by", "superseded by")


def as_list(facts: Iterable[Fact]) -> str:
    """Facts as numbered lines under headings."""
    groups: dict[str, list[str]] = {ABOUT_USER: []}
    for fact in facts:
        note = marks(fact)
        text = fact.text.replace("\n", "\n      ")
        line = f"{fact.id:>4}  {text}" + (f"  ({note})" if note else "")
        groups.setdefault(heading(fact), []).append(line)
    return "\n\n".join("\n".join([title, *lines]) for title, lines in groups.items() if lines)


def undo_last(db: SessionDB, memory: AgentMemory, fact: Fact | None = None) -> list[FactChange]:
    """Undo the latest change: of the memory, or of one fact; what was undone."""
    if fact is not None:
        targets = {memory.target_of(fact): db.facts.last_event(fact_id=fact.id)}
    else:
        targets = {
            target: db.facts.last_event(file=memory.file_name(target)) for target in MEMORY_KINDS
        }
    events = {event: target for target, event in targets.items() if event is not None}
    if not events:
        raise UsageError("There is nothing to undo.")
    latest = max(events)
    changes = db.facts.of_event(latest)
    memory.undo(events[latest], latest)
    return changes
