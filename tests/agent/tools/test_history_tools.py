"""The agent finds and reads what was said before."""

from __future__ import annotations

import re

from hermes_conversation.history_scope import ScopedHistory

DAY = 86_400


def talk(bench, name, *texts, at=1_750_000_000.0, **facts):
    bench.db.create_session(name, "cli", **facts)
    for place, text in enumerate(texts):
        role = ("user", "assistant")[place % 2]
        bench.db.append_message(name, role, text, timestamp=at + place)


def test_a_question_finds_quotations_with_titles_dates_and_ids(bench):
    talk(bench, "s2", "where is the blue teapot", "In the attic.")
    bench.db.set_session_title("s2", "Teapots")
    found = bench("session_search", query="where did we put that blue teapot?")["results"]
    assert re.search(r"session s2 \(cli\) Teapots\n", found)
    assert "2025-06-15 15:06, user [2 of 3 words]: where is the blue teapot" in found
    number = int(re.search(r"message (\d+)", found)[1])
    read = bench("session_read", message=number)["messages"]
    assert "user: where is the blue teapot" in read
    assert "assistant: In the attic." in read


def test_results_stay_below_the_limit_and_are_paged(bench):
    for number in range(30):
        talk(bench, f"talk{number}", f"docker compose number {number} " + "hay " * 200)
    pages, skip = [], 0
    while True:
        text = bench("session_search", query="docker compose", skip=skip)["results"]
        assert len(text.encode()) < 4 * 1_200
        pages += re.findall(r"session (talk\d+)", text)
        more = re.search(r"conversations: skip (\d+)", text)
        if more is None:
            break
        skip = int(more[1])
    assert sorted(pages) == sorted(f"talk{number}" for number in range(30))


def test_a_correction_is_stated_and_nothing_found_is_no_error(bench):
    talk(bench, "s2", "the library renders charts")
    assert "'librery': used 'library'" in bench("session_search", query="librery")["results"]
    assert bench("session_search", query="xyzzy")["results"] == "No matching messages."
    assert "is empty" in bench("session_search", query=" ")["error"]


def test_messages_that_may_not_be_read_are_not_read(bench):
    talk(bench, "own", "mine", session_key="chat:own")
    talk(bench, "other", "the secret", session_key="chat:other")
    ids = {row.content: row.id for name in ("own", "other") for row in bench.db.messages.rows(name)}
    history = ScopedHistory(bench.db, "chat:own")
    assert [row.content for row in history.around(ids["mine"])] == ["mine"]
    assert history.around(ids["the secret"]) == []
    assert history.answer("the secret of someone else").hits == []
    bench.db.delete_session("own")
    assert history.around(ids["mine"]) == []
    assert "No message 99" in bench("session_read", message=99)["error"]
