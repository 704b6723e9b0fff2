"""Searches as people type them: steps, order, word forms, corrections and time words."""

from __future__ import annotations

import random
from datetime import datetime
from typing import TYPE_CHECKING

import pytest

from hermes_core.clock import ManualClock
from hermes_state import SessionDB
from hermes_state.search.language import corrected, languages_of
from hermes_state.search.repository import SearchOptions
from hermes_state.search.time_words import period_of

if TYPE_CHECKING:
    from pathlib import Path

    from hermes_state.search.ladder import SearchAnswer
    from support.postgres import PostgresServer

TALKS = {
    "websocket": [
        "The websocket reconnect fails after an hour",
        "The proxy closes idle connections. A ping every thirty seconds fixes the reconnect.",
    ],
    "library": ["Which library renders charts?", "Recharts renders the charts of the page."],
    "garden": ["The tomatoes in the garden need water", "Water them in the evening."],
    "german": ["Wann blühen die Häuser im Garten?", "Das Haus blüht im Mai."],
    "chinese": ["怎样恢复备份文件", "用恢复命令可以恢复备份"],
}


@pytest.fixture
def talks(db: SessionDB) -> SessionDB:
    for number, (name, texts) in enumerate(TALKS.items()):
        db.create_session(name, "cli")
        for place, text in enumerate(texts):
            at = 1_700_000_000.0 + 1000 * number + place
            db.append_message(name, ("user", "assistant")[place % 2], text, timestamp=at)
    return db


def sessions(answer: SearchAnswer) -> list[str]:
    return list(dict.fromkeys(hit.session_id for hit in answer.hits))


@pytest.mark.parametrize("is_indexed", [True, False])
def test_a_question_finds_its_conversation_first(talks: SessionDB, is_indexed: bool) -> None:
    if is_indexed:
        talks.search.fill()
    answer = talks.search.answer("how did we fix the websocket that keeps reconnecting?")
    assert sessions(answer)[0] == "websocket"
    assert answer.sort == "rank"
    assert answer.words == ("fix", "websocket", "keeps", "reconnecting")
    assert [hit.words_found for hit in answer.hits] == [2, 2]


@pytest.mark.parametrize(
    ("query", "step", "found"),
    [
        ("websocket reconnect", "as written", "websocket"),
        ("the charts", "as written", "library"),
        ("is recharts", "all content words", "library"),
        ("websocket recon", "the last word as a prefix", "websocket"),
        ("tomato gardens", "all content words in any form", "garden"),
        ("websocket tomatoes", "any word", "garden"),
    ],
)
def test_a_short_query_is_answered_by_the_first_step_that_finds_something(
    talks: SessionDB, query: str, step: str, found: str
) -> None:
    answer = talks.search.answer(query)
    assert answer.step == step
    assert found in sessions(answer)


@pytest.mark.parametrize("query", ['"websocket tomatoes"', "websocket -reconnect", "webs* OR x"])
def test_an_operator_means_what_it_says(talks: SessionDB, query: str) -> None:
    answer = talks.search.answer(query)
    assert answer.step == "as written"
    assert [hit.id for hit in answer.hits] == [hit.id for hit in talks.search.find(query)]


def test_a_phrase_in_a_sentence_must_occur_if_it_occurs_anywhere(talks: SessionDB) -> None:
    answer = talks.search.answer('what was it that "renders charts" for us')
    assert {hit.session_id for hit in answer.hits} == {"library"}
    assert len(answer.hits) == 1
    assert talks.search.answer('what was the "charts of tomatoes" thing about').hits


def test_a_misspelled_word_is_corrected_and_the_answer_states_it(talks: SessionDB) -> None:
    answer = talks.search.answer("librery charts")
    assert sessions(answer) == ["library"]
    assert answer.corrections == (("librery", "library"),)
    assert talks.search.answer("library charts").corrections == ()


def test_forms_follow_the_language_of_the_question(talks: SessionDB) -> None:
    talks.search.fill()
    assert sessions(talks.search.answer("wann blühte das bei den Häusern im Garten"))[0] == "german"
    count = {"the": 10, "und": 3}.get
    assert languages_of(["docker"], lambda terms: {t: count(t, 0) for t in terms}) == (
        "english", "german",
    )  # fmt: skip
    assert languages_of(["привет"], lambda _: {}) == ("russian",)


def test_scripts_without_spaces_are_asked_in_pairs_of_characters(talks: SessionDB) -> None:
    for _ in range(2):
        assert sessions(talks.search.answer("请问怎样才能恢复我的备份")) == ["chinese"]
        talks.search.fill()


def test_the_last_word_is_a_prefix_while_it_is_typed(talks: SessionDB) -> None:
    for typed in ("tom", "tomat", "the tomatoes in the gard"):
        answer = talks.search.answer(typed, SearchOptions(is_typing=True))
        assert sessions(answer) == ["garden"], typed


@pytest.mark.parametrize("sort", ["newest", "oldest", "rank"])
def test_the_order_can_be_chosen(talks: SessionDB, sort: str) -> None:
    answer = talks.search.answer("charts", SearchOptions(sort=sort))
    assert answer.sort == sort
    ids = [hit.id for hit in answer.hits]
    assert len(ids) == 2
    assert sort == "rank" or ids == sorted(ids, reverse=sort == "newest")


@pytest.mark.parametrize("sort", ["newest", "oldest"])
def test_the_best_answers_to_a_question_can_be_listed_by_time(talks: SessionDB, sort: str) -> None:
    question = "how did we fix the websocket or proxy that keeps reconnecting in the garden"
    best = talks.search.answer(question).hits
    answer = talks.search.answer(question, SearchOptions(sort=sort))
    assert (answer.sort, answer.step) == (sort, "any word")
    ids = [hit.id for hit in answer.hits]
    assert ids == sorted(ids, reverse=sort == "newest")
    assert best[0].id in ids
    assert all(2 * hit.words_found >= best[0].words_found for hit in answer.hits)
    assert len(ids) < len(best)


def test_filters_hold_for_ranked_results(talks: SessionDB) -> None:
    talks.create_session("other", "telegram")
    talks.append_message("other", "user", "websocket reconnect fails on my phone, too", timestamp=5)
    question = "why does the websocket reconnect fail after some time"
    for options, found in (
        (SearchOptions(sources=("telegram",)), {"other"}),
        (SearchOptions(exclude_sources=("telegram",)), {"websocket"}),
        (SearchOptions(session_id="websocket"), {"websocket"}),
        (SearchOptions(allowed_ids=frozenset({"other"})), {"other"}),
        (SearchOptions(until=100), {"other"}),
        (SearchOptions(since=100, roles=("assistant",)), {"websocket"}),
    ):
        for _ in range(2):
            assert set(sessions(talks.search.answer(question, options))) == found
            talks.search.fill()
    talks.trash.delete_session("other")
    assert sessions(talks.search.answer(question)) == ["websocket"]


def test_pages_of_ranked_results_follow_each_other(talks: SessionDB) -> None:
    every = talks.search.answer("what renders the charts in the garden library").hits
    pages = [
        talks.search.answer(
            "what renders the charts in the garden library", SearchOptions(limit=1, offset=place)
        ).hits
        for place in range(len(every) + 1)
    ]
    assert [hit.id for page in pages for hit in page] == [hit.id for hit in every]


def test_tool_text_follows_ranked_messages(talks: SessionDB) -> None:
    talks.append_message("garden", "tool", "websocket reconnect log", tool_name="terminal")
    options = SearchOptions(with_tools=True)
    answer = talks.search.answer("what about the websocket reconnect log", options)
    assert [hit.role for hit in answer.hits][-1] == "tool"
    assert answer.hits[0].session_id == "websocket"


def test_a_purged_conversation_is_in_no_answer(talks: SessionDB) -> None:
    talks.search.fill()
    talks.trash.purge("websocket")
    assert not talks.search.answer("how did we fix the websocket reconnect").hits
    assert talks.search.answer("which library renders the charts").hits


def test_nothing_found_is_no_error(talks: SessionDB) -> None:
    assert talks.search.answer("qqqq wwww zzzz xyxy").hits == []
    assert talks.search.answer("?!").hits == []


def test_a_named_time_prefers_its_messages(hermes_home: Path) -> None:
    now = datetime(2026, 11, 19, 12).astimezone().timestamp()
    with SessionDB(hermes_home / "state.db", clock=ManualClock(now)) as db:
        for days, name in ((200, "spring"), (9, "week"), (1, "yesterday")):
            db.create_session(name, "cli")
            text = "we planned the deployment of the server"
            db.append_message(name, "user", text, timestamp=now - 86400 * days)
        for question, first in (
            ("what did we plan for the server deployment last week", "week"),
            ("what did we plan for the server deployment in May", "spring"),
            ("what did we plan for the server deployment", "yesterday"),
        ):
            found = sessions(db.search.answer(question))
            assert found[0] == first
            assert len(found) == 3


@pytest.mark.parametrize(
    ("text", "since", "until"),
    [
        ("what was it yesterday", (2026, 11, 18), (2026, 11, 19)),
        ("in March", (2026, 3, 1), (2026, 4, 1)),
        ("in december 2024", (2024, 12, 1), (2025, 1, 1)),
        ("during December", (2025, 12, 1), (2026, 1, 1)),
        ("on Monday", (2026, 11, 16), (2026, 11, 17)),
        ("in 2024", (2024, 1, 1), (2025, 1, 1)),
        ("last week", (2026, 11, 9), (2026, 11, 18)),
        ("last month", (2026, 10, 1), (2026, 11, 1)),
        ("last year", (2025, 1, 1), (2026, 1, 1)),
        ("past month", (2026, 10, 20), (2026, 11, 20)),
        ("the past year", (2025, 11, 19), (2026, 11, 20)),
        ("since March", (2026, 3, 1), (2026, 11, 20)),
        ("since Monday", (2026, 11, 16), (2026, 11, 20)),
        ("since 2024", (2024, 1, 1), (2026, 11, 20)),
        ("three weeks ago", (2026, 10, 26), (2026, 11, 2)),
    ],
)
def test_time_words_name_a_period(
    text: str, since: tuple[int, int, int], until: tuple[int, int, int]
) -> None:
    now = datetime(2026, 11, 19, 15).astimezone().timestamp()
    period = period_of(f"what did we say {text}?", now)
    assert period is not None
    assert period.since == datetime(*since).astimezone().timestamp()
    assert period.until == datetime(*until).astimezone().timestamp()
    assert period_of("what did we say", now) is None


@pytest.mark.parametrize(
    "text",
    ["in March 0000", "since may 0001", "in December 9999", "in march 1000", "on 0 days ago"],
)
def test_an_impossible_time_is_no_error(talks: SessionDB, text: str) -> None:
    assert sessions(talks.search.answer(f"what renders the charts {text}"))[0] == "library"


def test_corrections_choose_the_nearest_and_most_frequent_word() -> None:
    def count(terms: list[str]) -> dict[str, int]:
        return {term: len(term) for term in terms}

    assert corrected("recieve", ["receive", "relieve"], count) == "receive"
    assert corrected("haus", ["maus", "zebra"], count) == "maus"
    assert corrected("docker", ["kubernetes"], count) == ""
    assert corrected("haus", ["maus", "hausa"], lambda _terms: {"maus": 0, "hausa": 1}) == "hausa"


def test_no_undone_message_is_shown_beside_a_result(
    tmp_path: Path, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HERMES_STORE_URL", raising=False)
    with postgres.history() as url:
        for place in (tmp_path / "state.db", None):
            if place is None:
                monkeypatch.setenv("HERMES_STORE_URL", url)
            with SessionDB(place) as db:
                db.create_session("s", "cli")
                for text in ("apple", "apple answer", "secret", "secret answer"):
                    role = "assistant" if text.endswith("answer") else "user"
                    db.append_message("s", role, text)
                db.edits.undo("s")
                db.append_message("s", "user", "banana")
                db.append_message("s", "user", "a secret again", uid="inbox:7")
                db.edits.mark_deleted("inbox:7")
                db.append_message("s", "assistant", "banana answer")
                for words in ("banana", "apple", "which banana or apple answer was it"):
                    for hit in db.search.answer(words).hits:
                        assert "secret" not in str(hit.context), words
                (first, *_) = db.search.answer("banana", SearchOptions(sort="oldest")).hits
                texts = [each.content for each in first.context]
                assert texts == ["apple answer", "banana", "banana answer"]
                options = SearchOptions(include_inactive=True, sort="oldest")
                (first, *_) = db.search.answer("banana", options).hits
                assert "secret answer" in [each.content for each in first.context]


@pytest.mark.parametrize("is_indexed", [True, False])
def test_a_correction_names_no_word_that_the_search_may_not_find(
    talks: SessionDB, is_indexed: bool
) -> None:
    talks.create_session("own", "telegram", session_key="chat:own")
    talks.append_message("own", "user", "hello gardner")
    talks.create_session("trashed", "cli")
    talks.append_message("trashed", "user", "the secret is zanzibarland")
    talks.trash.delete_session("trashed")
    talks.create_session("undone", "cli")
    talks.append_message("undone", "user", "quuxification")
    talks.edits.undo("undone")
    if is_indexed:
        talks.search.fill()
    own = SearchOptions(allowed_ids=frozenset({"own"}))
    assert talks.search.answer("librery", own).corrections == ()
    assert talks.search.answer("gardnr", own).corrections == (("gardnr", "gardner"),)
    assert talks.search.answer("zanzibarlnd").corrections == ()
    assert talks.search.answer("quuxificatio").corrections == ()
    assert talks.search.answer("librery", SearchOptions(sources=("telegram",))).corrections == ()


def fill_randomly(db: SessionDB, seed: int) -> None:
    chance = random.Random(seed)
    words = ["error", "errors", "fix", "fixed", "docker", "garden", "the", "a", "库", "文件", "Ünï"]
    words += [f"word{number}" for number in range(30)]
    for number in range(25):
        db.create_session(f"s{number}", chance.choice(["cli", "telegram"]))
        for place in range(chance.randrange(1, 12)):
            text = " ".join(chance.choices(words, k=chance.randrange(0, 14)))
            role = chance.choice(["user", "assistant", "tool"])
            db.append_message(f"s{number}", role, text, timestamp=1000.0 * number + place)
    db.search.fill()


def test_frequent_words_are_found_wherever_the_filters_lead(
    tmp_path: Path, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HERMES_STORE_URL", raising=False)
    question = "which docker build error happened"
    filters = [
        SearchOptions(session_id="old"),
        SearchOptions(sources=("telegram",)),
        SearchOptions(allowed_ids=frozenset({"old"})),
        SearchOptions(until=2000.0),
        SearchOptions(roles=("assistant",)),
    ]
    with postgres.history() as url:
        for place in (tmp_path / "state.db", None):
            if place is None:
                monkeypatch.setenv("HERMES_STORE_URL", url)
            with SessionDB(place) as db:
                db.create_session("old", "telegram")
                db.append_message("old", "assistant", "docker build error", timestamp=1000.0)
                db.create_session("new", "cli")
                text = {"role": "user", "content": "docker build error", "timestamp": 3000.0}
                db.append_messages_batch("new", [text] * 8_100)
                db.append_message("new", "user", "it happened", timestamp=3000.0)
                for each in filters:
                    assert sessions(db.search.answer(question, each)) == ["old"], each


def test_an_option_of_a_command_is_no_exclusion(talks: SessionDB) -> None:
    talks.create_session("amended", "cli")
    talks.append_message("amended", "user", "then git commit --amend")
    talks.create_session("plain", "cli")
    talks.append_message("plain", "user", "then git commit")
    for query in ("git commit --amend", "git --amend", "--amend"):
        answer = talks.search.answer(query)
        assert sessions(answer)[0] == "amended", query
    assert [hit["session_id"] for hit in talks.search_messages("git --amend")] == ["amended"]
    assert sessions(talks.search.answer("git -amend")) == ["plain"]
    assert sessions(talks.search.answer("git -> commit")) == ["plain", "amended"]


def test_an_excluded_phrase_is_excluded_in_a_sentence_too(talks: SessionDB) -> None:
    found = sessions(talks.search.answer('the websocket reconnect fails -"after an hour"'))
    assert found == []
    found = sessions(talks.search.answer('connections ping every thirty -"after an hour"'))
    assert found == ["websocket"]


# Similar conversations


@pytest.fixture
def subjects(db: SessionDB) -> SessionDB:
    """Conversations of which some share a subject; all share ordinary words."""
    for name, text in {
        "proxy": "The websocket reconnect fails behind the nginx proxy. Please look at the file.",
        "nginx": "Configure nginx as a proxy for the websocket. Please write it to the file.",
        "idle": "The proxy closes an idle websocket. Please change the file.",
        "garden": "Tomatoes and basil in the garden. Please write them to the file.",
        "herbs": "Does basil grow beside tomatoes? Please look into the file.",
        "other": "Please look at the file and write something. Thank you.",
    }.items():
        db.create_session(name, "cli")
        db.append_message(name, "user", text)
        db.append_message(name, "assistant", "I changed the file.")
    return db


@pytest.mark.parametrize("is_indexed", [True, False])
def test_conversations_with_the_same_rare_words_are_similar(
    subjects: SessionDB, is_indexed: bool
) -> None:
    if is_indexed:
        subjects.search.fill()
    found = subjects.search.similar("proxy")
    assert [each.session_id for each in found][:2] == ["nginx", "idle"]
    assert {"nginx", "websocket", "proxy"} <= set(found[0].words)
    assert "the" not in found[0].words
    assert subjects.messages.session_of(found[0].hit.id) == "nginx"
    assert found[0].hit.offsets
    garden = subjects.search.similar("garden")
    assert garden[0].session_id == "herbs"
    assert set(garden[0].words) >= {"basil", "tomatoes"}
    assert len(subjects.search.similar("proxy", limit=1)) == 1


def test_similar_conversations_are_neither_copies_nor_branches_nor_in_the_trash(
    subjects: SessionDB,
) -> None:
    branch = subjects.edits.branch("proxy")
    subjects.append_message(branch, "user", "The websocket again, behind nginx")
    tasked = subjects.create_session("task", "subagent", parent_session_id="proxy")
    subjects.append_message(tasked, "user", "Find out why the nginx proxy drops the websocket")
    for name in ("proxy", branch, "task"):
        found = [each.session_id for each in subjects.search.similar(name)]
        assert found[:2] == ["nginx", "idle"], name
        assert not {"proxy", branch, "task"} & set(found)
    subjects.trash.delete_session("nginx")
    assert subjects.search.similar("proxy")[0].session_id == "idle"


def test_a_conversation_after_a_reset_may_be_similar_to_the_one_before(
    subjects: SessionDB,
) -> None:
    subjects.create_session(
        "next", "telegram", parent_session_id="idle", model_config={"_reset_from": "idle"}
    )
    subjects.append_message("next", "user", "The proxy closes an idle websocket, again")
    assert subjects.search.similar("next")[0].session_id == "idle"


def test_a_conversation_without_words_has_no_similar_ones(subjects: SessionDB) -> None:
    subjects.create_session("empty", "cli")
    assert subjects.search.similar("empty") == []
    subjects.append_message("empty", "user", "qqqq wwww 12345 !?")
    assert subjects.search.similar("empty") == []


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_both_engines_give_the_same_order(
    tmp_path: Path, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.delenv("HERMES_STORE_URL", raising=False)
    questions = [
        "how was the docker error fixed", "fix errors", "word1 word2 word3 word4",
        "what about the garden 库文件 and word9", "wrod12 fixing docker", "erro",
        "unï word5 docker fix",
    ]  # fmt: skip
    answers, similar = [], []
    with postgres.history() as url:
        for place in (tmp_path / "state.db", url):
            if place == url:
                monkeypatch.setenv("HERMES_STORE_URL", url)
            with SessionDB(place if place != url else None) as db:
                fill_randomly(db, seed)
                first = db.messages.rows("s0")[0].id
                answers.append([
                    (answer.step, answer.sort, answer.corrections,
                     [(hit.id - first, hit.words_found, hit.snippet) for hit in answer.hits])
                    for answer in (
                        db.search.answer(each, SearchOptions(limit=60)) for each in questions
                    )
                ])  # fmt: skip
                similar.append([
                    [(each.session_id, each.words, each.hit.id - first)
                     for each in db.search.similar(f"s{number}")]
                    for number in range(25)
                ])  # fmt: skip
    assert answers[0] == answers[1]
    assert all(hits for *_, hits in answers[0])
    assert similar[0] == similar[1]
    assert any(similar[0])
