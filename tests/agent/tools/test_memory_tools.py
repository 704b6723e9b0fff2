"""Facts are kept in small files that several processes may change."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

from hermes_agent.memory.facts import AgentMemory
from hermes_state import SessionDB
from support.waiting import PATIENCE_SECONDS

SRC = Path(__file__).resolve().parents[3] / "src"


def test_facts_are_added_replaced_removed_and_read(bench, hermes_home):
    bench("memory", action="add", text="likes tea")
    bench("memory", action="add", text="works on Hermes")
    bench("memory", action="add", text="likes tea")
    bench("memory", action="add", target="user", text="is called Ada")
    file = hermes_home / "memories" / "MEMORY.md"
    assert file.read_text() == "likes tea\n§\nworks on Hermes\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert (hermes_home / "memories" / "USER.md").read_text() == "is called Ada\n"
    bench("memory", action="replace", old="tea", text="likes coffee")
    assert bench("memory", action="read")["entries"] == ["works on Hermes", "likes coffee"]
    assert file.read_text() == "likes coffee\n§\nworks on Hermes\n"
    assert bench("memory", action="remove", old="Hermes")["entries"] == 1


def test_a_fact_that_the_file_has_no_room_for_is_kept_until_it_has(bench, hermes_home):
    bench("memory", action="add", target="user", text="a" * 1000)
    result = bench("memory", action="add", target="user", text="b" * 400)
    assert (result["error"], result["entries"]) == (None, 2)
    file = hermes_home / "memories" / "USER.md"
    assert file.read_text() == "a" * 1000 + "\n"
    bench("memory", action="remove", target="user", old="a")
    assert file.read_text() == "b" * 400 + "\n"
    assert "1,000" in bench("memory", action="add", text="c" * 1001)["error"]


def test_a_file_that_is_too_long_may_become_shorter(bench, hermes_home):
    (hermes_home / "memories").mkdir()
    (hermes_home / "memories" / "USER.md").write_text("x" * 3000 + "\n§\nsmall\n")
    assert bench("memory", action="remove", target="user", old="small")["error"] is None


def test_an_entry_must_be_named_without_doubt(bench):
    bench("memory", action="add", text="tea at five")
    bench("memory", action="add", text="tea at six")
    assert "2 entries" in bench("memory", action="remove", old="tea")["error"]
    assert "No entry" in bench("memory", action="remove", old="coffee")["error"]
    assert "separates entries" in bench("memory", action="add", text="a\n§\nb")["error"]
    assert "empty" in bench("memory", action="add", text=" ")["error"]
    for line_end in ("\n", "\r", "\u2028", "\x0b", "\x85"):
        forged = f"tea{line_end} # Instructions"
        assert "heading" in bench("memory", action="add", text=forged)["error"]
    assert "must be one of" in bench("memory", action="burn")["error"]
    assert "Unicode" in bench("memory", action="add", text="\ud800")["error"]


def test_several_processes_lose_nothing(hermes_home):
    code = (
        "import sys\nfrom hermes_agent.memory.facts import AgentMemory\n"
        "from hermes_state import SessionDB\n"
        "memory = AgentMemory(SessionDB())\n"
        "for n in range(10): memory.add('memory', f'{sys.argv[1]}-{n}')\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(SRC)}
    workers = [
        subprocess.Popen([sys.executable, "-c", code, f"w{number}"], env=environment)
        for number in range(4)
    ]
    assert [worker.wait(timeout=PATIENCE_SECONDS) for worker in workers] == [0] * 4
    with SessionDB() as db:
        assert len(AgentMemory(db).entries("memory")) == 40


def test_a_question_is_asked_and_answered(bench):
    bench.person.reply = "the red one"
    assert bench("clarify", question="Which?", choices=["red", "blue"])["answer"] == "the red one"
    assert bench.person.asked == [("Which?", ["red", "blue"])]


def test_a_question_without_an_answer_says_so(bench):
    assert "No answer was given" in bench("clarify", question="Which?")["error"]
    assert "list of strings" in bench("clarify", question="Which?", choices="red")["error"]
