"""Facts of the memory are rows with evidence; two files list them and may be edited."""

from __future__ import annotations

import fcntl
import os
import shutil
import sqlite3
import threading
from typing import TYPE_CHECKING

import pytest

from hermes_agent.memory.evidence import owner_messages, support
from hermes_agent.memory.facts import AgentMemory, Proposal
from hermes_agent.memory.files import MEMORY_KINDS, used_characters
from hermes_agent.tools.base import ToolError
from hermes_conversation.remembered_facts import undo_last
from hermes_core.paths import hermes_home, person_memory_path
from support.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from hermes_agent.memory.facts import Remembered
    from hermes_core.clock import ManualClock
    from hermes_state import SessionDB
    from hermes_state.facts import Fact

pytestmark = pytest.mark.engines
FIRST = "20260101_000000_abcdef01"
SECOND = "20260102_000000_abcdef02"
USER_MD = "memories/USER.md"


class Talks:
    """Conversations whose reviews propose facts."""

    def __init__(self, db: SessionDB, clock: ManualClock) -> None:
        self.db, self.clock = db, clock
        self.memory = AgentMemory(db)

    def say(self, text: str, session_id: str = FIRST) -> int:
        if self.db.sessions.find(session_id) is None:
            self.db.create_session(session_id, "cli")
        self.clock.advance(60)
        return self.db.append_message(session_id, "user", text)

    def propose(self, text: str, quotation: str, session_id: str = FIRST) -> Remembered:
        messages = owner_messages(self.db, session_id)
        found = support(text, [quotation], messages, must_quote=True)
        assert found.evidence, found.problem
        self.clock.advance(60)
        return self.memory.remember(Proposal("user", text, "review", found.evidence))

    def texts(self, state: str = "active") -> list[str]:
        return [fact.text for fact in self.memory.facts("user") if fact.state == state]

    def fact(self, text: str) -> Fact:
        return next(fact for fact in self.memory.facts("user") if fact.text == text)

    @property
    def file(self) -> Path:
        return hermes_home() / USER_MD

    def write(self, content: str | bytes) -> None:
        """Edit the file by hand: on a shared history, that of the database."""
        data = content.encode() if isinstance(content, str) else content
        self.file.parent.mkdir(exist_ok=True)
        self.file.write_bytes(data)
        if not self.db.engine.database.is_file:
            self.db.files.put(f"memory/{USER_MD}", data)


@pytest.fixture
def talks(db: SessionDB, clock: ManualClock) -> Talks:
    return Talks(db, clock)


def test_a_fact_keeps_where_it_was_said(talks: Talks) -> None:
    message = talks.say("By the way, I like tea a lot.")
    talks.propose("Likes tea.", "I like tea")
    fact = talks.fact("Likes tea.")
    assert (fact.state, fact.created_by, fact.subject) == ("active", "review", "user")
    (source,) = talks.db.facts.sources([fact.id])
    assert (source.text, source.evidence.message_id) == ("I like tea", message)
    assert talks.file.read_text() == "Likes tea.\n"


def test_the_same_said_again_adds_evidence(talks: Talks) -> None:
    talks.say("I like tea a lot.")
    talks.propose("Likes tea.", "I like tea")
    talks.say("Did I say that I like tea?", SECOND)
    assert talks.propose("The user likes tea", "I like tea", SECOND).outcome == "merged"
    assert len(talks.db.facts.sources([talks.fact("Likes tea.").id])) == 2
    assert talks.texts() == ["Likes tea."]


def test_newer_words_supersede_older_ones_in_any_order(talks: Talks) -> None:
    talks.say("I live in Berlin")
    talks.say("I live in Hamburg now", SECOND)
    talks.propose("Lives in Hamburg", "live in Hamburg", SECOND)
    late = talks.propose("Lives in Berlin", "live in Berlin")
    assert late.outcome == "superseded"
    assert (talks.texts(), talks.texts("superseded")) == (["Lives in Hamburg"], ["Lives in Berlin"])
    talks.say("I live in Bonn from May on", SECOND)
    talks.propose("Lives in Bonn", "live in Bonn", SECOND)
    assert talks.texts() == ["Lives in Bonn"]
    assert talks.fact("Lives in Hamburg").successor == talks.fact("Lives in Bonn").id
    assert talks.file.read_text() == "Lives in Bonn\n"


def test_a_pinned_fact_is_not_superseded(talks: Talks) -> None:
    talks.memory.add("user", "Lives in Berlin")
    talks.memory.pin(talks.fact("Lives in Berlin"), "owner", is_pinned=True)
    talks.say("I live in Hamburg now")
    talks.propose("Lives in Hamburg", "live in Hamburg")
    assert talks.texts() == ["Lives in Berlin"]


def test_what_was_rejected_stays_rejected_until_it_is_said_again(talks: Talks) -> None:
    talks.say("I like tea a lot.")
    talks.propose("Likes tea.", "I like tea")
    talks.memory.set_state(talks.fact("Likes tea."), "owner", is_active=False)
    assert talks.texts() == []
    assert talks.file.read_text() == ""
    with pytest.raises(ToolError, match="rejected"):
        talks.propose("The user likes tea.", "I like tea")
    talks.say("I like tea after all.")
    talks.propose("The user likes tea.", "I like tea")
    assert talks.texts() == ["The user likes tea."]


def test_an_edit_by_hand_is_a_fact_of_the_owner(talks: Talks) -> None:
    talks.say("I like tea a lot. I live in Oslo.")
    talks.propose("Likes tea.", "I like tea")
    talks.propose("Lives in Oslo.", "I live in Oslo")
    talks.write("Likes green tea.\n§\nOwns a cat.\n")
    assert talks.texts() == ["Likes green tea.", "Owns a cat."]
    assert talks.fact("Owns a cat.").created_by == "owner"
    edited = talks.fact("Likes tea.")
    assert (edited.state, edited.successor) == ("superseded", talks.fact("Likes green tea.").id)
    assert talks.fact("Lives in Oslo.").state == "rejected"
    assert talks.memory.entries("user") == ["Likes green tea.", "Owns a cat."]
    with pytest.raises(ToolError, match="rejected"):
        talks.propose("Lives in Oslo.", "I live in Oslo")


def test_bytes_of_other_entries_survive_a_change(talks: Talks) -> None:
    talks.write(b"caf\xe9 \xff\r\n\xc2\xa7\r\n  two  lines\r\nhere\r\n")
    talks.memory.add("user", "Owns a cat.")
    expected = b"caf\xe9 \xff\r\n\xc2\xa7\r\n  two  lines\r\nhere\r\n\xc2\xa7\r\nOwns a cat.\r\n"
    assert talks.file.read_bytes() == expected
    talks.memory.forget("user", "cat", "owner")
    assert talks.file.read_bytes().startswith(b"caf\xe9 \xff\r\n\xc2\xa7\r\n  two  lines\r\nhere")
    assert talks.texts() == ["caf\ufffd \ufffd", "two  lines\nhere"]


def test_a_kill_between_the_store_and_the_file_is_no_edit(talks: Talks) -> None:
    """The row is stored, the file is not written: the next reader writes it."""
    talks.memory.add("user", "Owns a cat.")
    before = talks.file.read_bytes()
    talks.memory.add("user", "Likes tea.")
    talks.db.facts.edit(
        "owner",
        lambda editor: editor.set_listed([talks.fact("Likes tea.").id], is_listed=False),
    )
    talks.write(before)
    assert talks.texts() == ["Owns a cat.", "Likes tea."]
    assert talks.memory.entries("user") == ["Owns a cat.", "Likes tea."]
    after = talks.file.read_bytes()
    talks.memory.forget("user", "cat", "owner")
    cat = talks.fact("Owns a cat.").id
    talks.db.facts.edit("owner", lambda editor: editor.set_listed([cat], is_listed=True))
    talks.write(after)
    assert talks.texts() == ["Likes tea."]
    assert talks.memory.entries("user") == ["Likes tea."]


def test_an_edit_while_a_change_waits_for_the_store_is_kept(talks: Talks) -> None:
    if not talks.db.engine.database.is_file:
        pytest.skip("a shared history has the file in the database")
    talks.memory.add("user", "Likes tea.")
    other = sqlite3.connect(talks.db.engine.database.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    thread = threading.Thread(target=lambda: talks.memory.add("user", "Owns a cat."))
    thread.start()
    wait_until(lambda: is_locked(talks.file.parent))
    talks.write("Likes tea.\n§\nPlays chess.\n")
    other.execute("ROLLBACK")
    other.close()
    thread.join()
    assert sorted(talks.texts()) == ["Likes tea.", "Owns a cat.", "Plays chess."]
    assert talks.file.read_text() == "Likes tea.\n§\nPlays chess.\n§\nOwns a cat.\n"


def is_locked(folder: Path) -> bool:
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False


def test_the_mark_of_an_encoding_is_no_edit(talks: Talks) -> None:
    talks.say("I like tea")
    talks.propose("Likes tea.", "I like tea")
    talks.write(b"\xef\xbb\xbfLikes tea.\r\n\xc2\xa7\r\nOwns a cat.\r\n")
    assert talks.texts() == ["Likes tea.", "Owns a cat."]
    assert [fact.created_by for fact in talks.memory.facts("user")] == ["review", "owner"]
    talks.memory.forget("user", "cat", "owner")
    assert talks.file.read_bytes() == b"\xef\xbb\xbfLikes tea.\n"


def test_undo_of_a_fact_leaves_later_changes_of_others(talks: Talks) -> None:
    talks.memory.add("user", "The port is 8080.")
    talks.memory.add("user", "The port is 9090.")
    first, second = talks.memory.facts("user")
    assert first.state == "superseded"
    talks.memory.set_state(first, "owner", is_active=False)
    undo_last(talks.db, talks.memory, second)
    assert [fact.state for fact in talks.memory.facts("user")] == ["rejected", "rejected"]


def test_a_folder_that_cannot_be_written_does_not_stop_a_conversation(talks: Talks) -> None:
    talks.memory.add("user", "Owns a cat.")
    shutil.rmtree(talks.file.parent)
    talks.file.parent.write_text("no folder")
    assert talks.memory.chosen("user", None, "") == talks.memory.active("user")


def test_what_changed_together_is_undone_together(talks: Talks) -> None:
    talks.say("I live in Berlin. I live in Hamburg now.")
    talks.propose("Lives in Berlin", "live in Berlin")
    talks.propose("Lives in Hamburg", "live in Hamburg")
    event = talks.db.facts.last_event(file=USER_MD)
    assert event is not None
    talks.memory.undo("user", event)
    assert (talks.texts(), talks.texts("rejected")) == (["Lives in Berlin"], ["Lives in Hamburg"])
    assert talks.db.facts.last_event(file=USER_MD) != event
    reasons = [each.reason for each in talks.db.facts.changes(talks.fact("Lives in Berlin").id)]
    assert reasons[0] == "added"
    assert reasons[-1].startswith("undone: superseded by fact")


def test_a_fact_whose_evidence_is_gone_is_stale_until_it_is_back(talks: Talks) -> None:
    talks.memory.add("user", "Owns a cat.")
    talks.say("I like tea a lot.")
    talks.propose("Likes tea.", "I like tea")
    talks.db.trash.delete_session(FIRST)
    assert [fact.text for fact in talks.memory.chosen("user", None, "")] == ["Owns a cat."]
    assert talks.fact("Likes tea.").state == "stale"
    assert talks.memory.entries("user") == ["Owns a cat."]
    talks.db.trash.restore(FIRST)
    assert [fact.state for fact in talks.db.facts.check()] == ["active"]
    assert talks.texts() == ["Owns a cat.", "Likes tea."]
    talks.db.trash.purge(FIRST)
    assert [fact.state for fact in talks.db.facts.check()] == ["stale"]
    (source,) = talks.db.facts.sources([talks.fact("Likes tea.").id])
    assert (source.problem, source.text) == ("deleted", "")


def test_an_undone_message_and_a_changed_one_no_longer_count(talks: Talks) -> None:
    talks.say("hello there")
    message = talks.say("I like tea a lot.")
    talks.propose("Likes tea.", "I like tea")
    talks.db.edits.rewind(FIRST, message)
    assert [fact.state for fact in talks.db.facts.check()] == ["stale"]
    talks.db.edits.restore_rewound(FIRST)
    assert [fact.state for fact in talks.db.facts.check()] == ["active"]


def test_the_evidence_of_a_compacted_conversation_counts(talks: Talks) -> None:
    for text in ("I like tea a lot.", "second", "third"):
        talks.say(text)
    talks.propose("Likes tea.", "I like tea")
    kept = talks.db.messages.get_messages_as_conversation(FIRST)[1:]
    summary = {"role": "user", "content": "a summary", "finish_reason": "summary"}
    talks.db.edits.archive_and_compact(FIRST, [summary, *kept])
    assert talks.db.facts.check() == []


def test_a_prompt_has_pinned_facts_those_of_the_folder_and_of_the_question(
    talks: Talks, tmp_path: Path
) -> None:
    for number in range(30):
        talks.clock.advance(60)
        talks.memory.add("memory", f"Server number {number} is in rack {number} of hall Alpha")
    facts = talks.memory.facts("memory")
    talks.memory.pin(facts[3], "owner", is_pinned=True)
    project = Proposal("memory", "Tests run with make.", "agent", folder=str(tmp_path))
    talks.memory.remember(project)
    limit = MEMORY_KINDS["memory"].characters
    chosen = talks.memory.chosen("memory", tmp_path / "src", "what is on server number 7?")
    texts = [fact.text for fact in chosen]
    assert used_characters(texts) <= limit
    assert facts[3].text in texts
    assert facts[7].text in texts
    assert "Tests run with make." in texts
    assert [fact.id for fact in chosen] == sorted(fact.id for fact in chosen)
    elsewhere = talks.memory.chosen("memory", tmp_path.parent / "other", "")
    assert "Tests run with make." not in [fact.text for fact in elsewhere]


def test_what_a_conversation_was_told_stays_and_news_are_added(talks: Talks) -> None:
    talks.memory.add("user", "Likes tea.")
    since = talks.clock.now()
    talks.clock.advance(60)
    talks.memory.add("user", "Owns a cat.")
    told = {"Likes tea."}
    current = talks.memory.current("user", None, told.__contains__, since)
    assert [fact.text for fact in current] == ["Likes tea.", "Owns a cat."]
    older = talks.memory.current("user", None, told.__contains__, since + 3600)
    assert [fact.text for fact in older] == ["Likes tea."]


def test_other_people_have_facts_of_their_own(talks: Talks) -> None:
    talks.memory.add("user", "Likes tea.")
    other = AgentMemory(talks.db, person_memory_path("telegram-42"))
    other.add("user", "Likes coffee.")
    assert other.entries("user") == ["Likes coffee."]
    assert talks.texts() == ["Likes tea."]
    with pytest.raises(Exception, match="another person"):
        talks.memory.target_of(other.facts("user")[0])


def test_the_use_of_facts_is_counted(talks: Talks) -> None:
    talks.memory.add("user", "Likes tea.")
    talks.memory.note_use(talks.memory.chosen("user", None, ""))
    fact = talks.fact("Likes tea.")
    assert fact.times_used == 1
    assert fact.last_used_at is not None
