"""Every metric equals a simple reference implementation."""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from acceptance.campaign import size
from achievements import reference_metrics
from hermes_achievements.calendar import Calendar
from hermes_achievements.classification.shell_commands import command_labels
from hermes_achievements.metrics import COUNTS, PEAKS, VARIETY
from hermes_achievements.metrics.facts import (
    FINGERPRINT_FIELD,
    ID_FIELD,
    TIME_FIELD,
    make_fact,
    read_facts,
)
from hermes_achievements.metrics.session_view import SessionView
from hermes_achievements.scan.history import MessageRow, SessionRow
from hermes_state.engine.driver import sqlite3

# The benchmarks are programs, not a package: their folder is put on the path.
sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmarks"))

from history import Size, make
from history.texts import COMMANDS as SAMPLE_COMMANDS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import tzinfo

BERLIN = ZoneInfo("Europe/Berlin")
ZONES = [BERLIN, ZoneInfo("Asia/Kathmandu"), ZoneInfo("America/St_Johns")]
START = 1_760_000_000.0
TRACE = "Traceback (most recent call last):\n  File 'a.py', line 1\nKeyError: 1"
TEST_COMMANDS = ["pytest -q", "npm test", "cd a && python3 -m pytest -x", "uv run pytest | tail"]
COMMANDS = [
    *TEST_COMMANDS,
    *(command.format(n=7, name="get_row") for _, command in SAMPLE_COMMANDS if "$(" not in command),
    "git commit -m 'a && git push'",
    'git commit -m "say \\"git push\\" | no"; git push',
    "git add . &&\\\n  git commit -m x",
    "cat <<EOF > a\ngit push\nEOF\ngit tag v1",
    "cat <<-'END' | sh\n\tgit push\n\tEND",
    "cat <<EOF\ngit push",
    "# git push\nls # git push",
    "echo 'unfinished && git push",
    'echo "unfinished && git push',
    "make && npm run dev &",
    "a=1 b='x y' sudo -E make -C src test",
    "timeout 60 npx -y prettier .",
    "(cd a && make) || echo no",
    "pytest | tail; grep x a",
    "grep -q x a || diff a b",
    "git tag; git tag -l; git stash list; git stash pop; uv pip list; cargo +nightly test",
    "(make; npm test) && { go test; }",
    "pytest && git push;\n",
    "ls 2>&1 >/dev/null &> x",
    "git -C /srv/app -c a=b stash && git --no-pager log",
    '"git" "commit" -m x',
    "'my tool' commit",
    "/usr/bin/git push; C:/bin/git.exe tag",
    *("npm run test:unit", "sleep 5 & ", "env; sudo; timeout 5"),
    *("docker", "find . -exec rm {} +", "&&", ";;;", "\\", "x" * 30, "Git Push", ""),
    "; ".join(["make", "ls", "cat a"] * 6),
    "pnpm run build; yarn run lint; bun run",
    "python; python3.11 x.py; python -m; pypy3 -u -m http.server",
    "git\tpush\r\ngit tag",
]
# The labels of these commands according to the documentation of `command_labels`.
TRICKY_COMMANDS = {
    "uv run python -m pytest": ["pytest"],
    "sudo -u postgres psql": ["psql"],
    "nice -n 5 make": ["make"],
    "timeout -s KILL 60 make": ["make"],
    "ls # don't\ngit commit -m 'x'": ["ls?", "git commit"],
    "ls;# git push; git tag v1": ["ls"],
    'echo "a <<EOF"\ngit push': ["git push"],
    "cat <<<word\ngit push": ["cat?", "git push"],
    "cat <<A <<B\nx\nA\ngit push\nB": ["cat"],
    "cat <<\\EOF\ngit push\nEOF": ["cat"],
    "ls ${HOME}/bin": ["ls"],
    "sleep $((1+2))": ["sleep"],
    "git stash drop stash@{0}": ["git stash"],
    "files=(a.py b.py)": [],
    "echo $(pytest)": ["pytest?"],
    "make -j$(nproc)": ["make", "nproc?"],
    "echo $(date) git push": ["date?"],
}
ALPHABET = ["git ", "push", "commit", " ", "&&", "|", ";", "&", "\n", "#", "-m ", "make", "'a b'"]
TOOLS = [
    *("terminal", "Terminal", "bash", "process", "read_file", "write_file", "patch", "edit"),
    *("search_files", "web_search", "web_extract", "browser_click", "browser_vision", "memory"),
    *("delegate_task", "cronjob", "session_search", "image_generate", "text_to_speech", "todo"),
    *("execute_code", "skill_view", "skill_manage", "clarify", "mcp_x", "MCP-y", "odd", "n" * 70),
]
PATHS = ["a.py", "./a.py", "src\\B.TS", "C:\\x\\y.yml", "/a/Dockerfile", ".bashrc", "README", "d/"]
PATHS += ["x.jpeg", "a/../b.rs", "", ".", "/dev/null", " c.go ", "a.b.tar.gz", "n\nl", "Makefile"]
PATCHES = ["*** Update File: a.py\n+x\n*** Add File: b/c.md", "--- a/x\n+++ b/y.rs\t2024\n+++ x"]
RESULTS: list[Any] = [
    {"output": "fine", "exit_code": 0, "error": None},
    *({"output": "", "exit_code": code} for code in (1, 2, 124, 127, 130, 256, 512, -9, -300)),
    {"exit_code": True, "error": ""},
    {"exit_code": "1", "returncode": 1},
    {"exitCode": 0, "error": "but fine"},
    {"output": TRACE, "exit_code": 1},
    {"output": TRACE, "exit_code": 0},
    {"output": "it said: " + TRACE},
    {"lines": [{"text": "x\n" + TRACE}]},
    *({"error": error} for error in ("bad", "", 0, [], {}, False, True, 1, ["x"], None)),
    {"success": False, "error": None},
    {"success": True, "content": "error"},
    {"status": "Error"},
    {"status": "ok"},
    {"status": 1},
    {},
]
TEXTS = [
    b"done", b"{damaged", b"[1]", b"[exit code: 1]", b"Exit code 0", b"\xff\xfe",
    b"x\nProcess exited with code 2.", b"exit status=127\n" + b"y" * 400, TRACE.encode(),
    b"y" * 400 + b"\nexit code 1\n", b"y\n" * 200 + b"exit: -9", b"  " + TRACE.encode(),
    b"z" * 170 + b"\nexit code 1\n" + b"z" * 170,
    b'{"error": NaN}', b'{"error": "\\ud800"}', b"", b"0 Traceback (most recent call last)",
]  # fmt: skip
MARKS = ["c1", "c2", "c3", "", None, 7]
STEPS = [0, 0, 0.25, 1, 5, 61, 75, 76, 299.5, 300, 301, 3600, 40_000, 86_400, 8 * 86_400]
STEPS += [31 * 86_400, -5]
MODELS = ["anthropic/claude-sonnet-4-20250514:beta", "claude-sonnet-4", "gpt-5-mini", "none", ""]
MODELS += [
    "openrouter/x-ai/grok-4-fast:free",
    "qwen3:8b",
    "claude-3-5-sonnet-latest",
    "lab/new_one",
]
MODELS += ["mystery-7", "gpt-4-0613", "o3", "phi4", "GPTX", "a/b/", "3", "-latest"]


# --- strategies --------------------------------------------------------------------------


def commands() -> st.SearchStrategy[Any]:
    odd = st.lists(st.sampled_from(ALPHABET), max_size=8).map("".join)
    return st.one_of(st.sampled_from(COMMANDS), odd, st.sampled_from([None, 5, ["ls"]]))


def call_arguments() -> st.SearchStrategy[Any]:
    path = st.sampled_from(PATHS)
    several = st.lists(st.one_of(path, path.map(lambda p: {"path": p}), st.none()), max_size=3)
    arguments = st.fixed_dictionaries(
        {},
        optional={
            "command": commands(),
            "cmd": commands(),
            "background": st.sampled_from([True, False, "true"]),
            "path": path,
            "file_path": path,
            "files": several,
            "diff": st.sampled_from(PATCHES),
            "action": st.sampled_from(["add", "Create", "list", "patch", "schedule", 3]),
            "tasks": st.sampled_from([[], [1], [1, 2, 3], "x"]),
        },
    )
    plain = st.one_of(arguments.map(json.dumps), arguments)
    return st.one_of(plain, plain, plain, st.sampled_from(["{damaged", "[]", None, ""]))


def make_call(mark: Any, tool: str, arguments: Any, is_flat: bool) -> dict[str, Any]:
    function = {"name": tool, "arguments": arguments}
    return {"id": mark, **function} if is_flat else {"id": mark, "function": function}


def tool_calls() -> st.SearchStrategy[dict[str, Any]]:
    marks = st.sampled_from(MARKS)
    return st.builds(make_call, marks, st.sampled_from(TOOLS), call_arguments(), st.booleans())


def result_contents() -> st.SearchStrategy[bytes]:
    structured = st.sampled_from(RESULTS).map(lambda result: json.dumps(result).encode())
    return st.one_of(structured, structured, st.sampled_from(TEXTS))


def user_row() -> st.SearchStrategy[dict[str, Any]]:
    content = st.sampled_from([b"me: ok", b"me: go on", b"me: " + b"long " * 50])
    length = st.sampled_from([0, 1, 12, 13, 1999, 2000])
    return st.fixed_dictionaries(
        {"role": st.just("user"), "content": content, "length": length},
        optional={"is_observed": st.booleans(), "is_copy": st.booleans()},
    )


def assistant_row() -> st.SearchStrategy[dict[str, Any]]:
    good = st.lists(tool_calls(), min_size=1, max_size=4).map(lambda c: json.dumps(c).encode())
    bad = st.sampled_from([b"[", b"{}", b'["x", {"name": ""}, {"name": 5}]', b"[]", b"\xff", None])
    return st.fixed_dictionaries(
        {
            "role": st.just("assistant"),
            "tool_calls": st.one_of(good, good, bad),
            "content": st.sampled_from([b"it: done", b"it: well", None]),
        }
    )


def tool_row() -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {
            "role": st.just("tool"),
            "content": result_contents(),
            "tool_name": st.sampled_from(TOOLS),
            "call_id": st.sampled_from(["c1", "c2", "c3", "c4", "", None]),
        },
        optional={"is_copy": st.booleans()},
    )


def call_message(tool: str, **arguments: Any) -> dict[str, Any]:
    call = make_call("c1", tool, json.dumps(arguments), is_flat=False)
    return {"role": "assistant", "tool_calls": json.dumps([call]).encode()}


def call_with_result(tool: str, code: int = 0, **arguments: Any) -> list[dict[str, Any]]:
    """A call and its result."""
    content = json.dumps({"exit_code": code}).encode()
    return [
        call_message(tool, **arguments),
        {"role": "tool", "tool_name": tool, "call_id": "c1", "content": content},
    ]


USER_MESSAGE = {"role": "user", "content": b"me: go", "length": 2}
REPLY = {"role": "assistant", "content": b"it: done"}
FAILED_TEST, PASSED_TEST = (
    call_with_result("terminal", 1, command="pytest"),
    call_with_result("bash", 0, command="cd a && pytest"),
)
EDIT = call_with_result("patch", path="a.py")
COMMIT_AND_PUSH = [
    *call_with_result("shell", command="git commit -m x"),
    *call_with_result("shell", command="git push"),
]
SCENES = [
    [USER_MESSAGE] * 9,
    [USER_MESSAGE] * 10,
    [USER_MESSAGE, *[call_message("todo")] * 10, REPLY],
    [call_message("read_file", path="a.py"), call_message("patch", path="./a.py"), *EDIT],
    [*FAILED_TEST, *EDIT, *PASSED_TEST, *COMMIT_AND_PUSH],
    [*FAILED_TEST * 4, *PASSED_TEST, *FAILED_TEST * 5, *PASSED_TEST, *COMMIT_AND_PUSH],
    [*FAILED_TEST * 9, *PASSED_TEST * 24],
    [*FAILED_TEST * 10, *PASSED_TEST * 25],
    PASSED_TEST * 24,
    PASSED_TEST * 25,
    [
        *PASSED_TEST * 13,
        *call_with_result("terminal", 0, command="pytest && git commit -m x && git push"),
    ],
    [
        *[call_message("web_search")] * 2,
        call_message("web_extract"),
        *EDIT,
        call_message("write_file", path="b.c"),
    ],
    [*call_with_result("session_search"), *COMMIT_AND_PUSH],
    [
        *call_with_result("terminal", 1, command="grep x a"),
        *call_with_result("terminal", 1, command="cat a | grep x"),
    ],
]


def row_lists() -> st.SearchStrategy[list[dict[str, Any]]]:
    """Scenes, shell commands, and arbitrary rows."""
    odd = st.just({"role": "system", "content": b"rules"})
    item = st.one_of(user_row(), assistant_row(), tool_row(), assistant_row(), tool_row(), odd)
    codes = st.sampled_from([0, 0, 1, 124, 127])
    ran = st.builds(call_with_result, st.just("terminal"), codes, command=st.sampled_from(COMMANDS))
    acts = st.sampled_from(["memory", "cronjob", "skill_manage"])
    acted = st.builds(
        call_with_result, acts, action=st.sampled_from(["add", "Create", "list", "patch"])
    )
    scene = st.one_of(item.map(lambda row: [row]), st.sampled_from(SCENES), ran, acted)
    return st.lists(scene, max_size=10).map(lambda scenes: [row for rows in scenes for row in rows])


def session_rows(name: str, parent: str | None) -> st.SearchStrategy[SessionRow]:
    single_session = ["conversation", "conversation", "scheduled", "subagent"]
    tokens = st.sampled_from([0, 10_000, 40_000, 160_000])
    return st.builds(
        SessionRow,
        id=st.just(name),
        kind=st.sampled_from(
            [*single_session, "branch", "continuation"] if parent else single_session
        ),
        source=st.sampled_from(["cli", "telegram", ""]),
        model=st.sampled_from(MODELS),
        started_at=st.integers(0, 9_000).map(lambda hours: START + 3600 * hours),
        ended_at=st.sampled_from([None, START]),
        end_reason=st.sampled_from(["", "cli_close", "crashed"]),
        is_titled=st.booleans(),
        input_tokens=tokens,
        output_tokens=tokens,
        cached_tokens=tokens,
        reasoning_tokens=tokens,
        cost_usd=st.sampled_from([0.0, 0.004, 0.005, 0.015, 1.25]),
        parent_id=st.just(parent),
    )


@st.composite
def histories(draw: st.DrawFn) -> reference_metrics.ReferenceHistory:
    ids = count(1)
    sessions: list[SessionRow] = []
    messages: dict[str, list[MessageRow]] = {}
    for number in range(draw(st.integers(1, 4))):
        parent = draw(st.sampled_from([s.id for s in sessions])) if sessions else None
        session = draw(session_rows(f"s{number}", parent))
        rows = draw(row_lists())
        if session.kind in ("branch", "continuation"):
            copied = [row._asdict() for row in messages[parent or ""]]
            is_marked = draw(st.booleans())
            rows = [
                row | {"is_copy": is_marked} for row in copied[: draw(st.integers(0, 9))]
            ] + rows
        sessions.append(session)
        messages[session.id] = list(timed(draw, session.started_at, rows, ids))
    return reference_metrics.ReferenceHistory(sessions, messages)


def timed(
    draw: st.DrawFn, now: float, rows: list[dict[str, Any]], ids: Iterator[int]
) -> Iterator[MessageRow]:
    steps = draw(st.lists(st.sampled_from(STEPS), min_size=1, max_size=8))
    for number, row in enumerate(rows):
        now += steps[number % len(steps)]
        yield MessageRow(**(row | {"id": next(ids), "at": row.get("at", now)}))


# --- comparison ---------------------------------------------------------------------------

Figures = dict[str, Any]


def by_metrics(history: reference_metrics.ReferenceHistory, zone: tzinfo) -> Figures:
    calendar = Calendar(zone)
    days: dict[str, dict[str, int]] = {name: defaultdict(int) for name in COUNTS}
    maxima = dict.fromkeys([*COUNTS, *PEAKS], 0)
    seen: dict[str, dict[str, tuple[float, int, str]]] = {name: {} for name in VARIETY}
    for row in history.sessions:
        before = sorted(history.messages.get(row.parent_id or "", []))
        parents = [
            fact[FINGERPRINT_FIELD] for item in before if (fact := make_fact(item)) is not None
        ]
        session = SessionView(read_facts(row, history.messages.get(row.id, []), parents), calendar)
        for name, count_in in COUNTS.items():
            events = count_in(session)
            maxima[name] = max(maxima[name], sum(amount for _, amount in events))
            for fact, amount in events:
                days[name][calendar.day(fact[TIME_FIELD])] += amount
        for name, peaks_in in PEAKS.items():
            maxima[name] = max([maxima[name], *(amount for _, amount in peaks_in(session))])
        for name, values_in in VARIETY.items():
            for fact, value in values_in(session):
                appearance = (fact[TIME_FIELD], fact[ID_FIELD], row.id)
                seen[name][value] = min(seen[name].get(value, appearance), appearance)
    first = {n: {v: (at, s, m) for v, (at, m, s) in item.items()} for n, item in seen.items()}
    return {"days": days, "most": maxima, "first": first}


def by_reference(history: reference_metrics.ReferenceHistory, zone: tzinfo) -> Figures:
    maxima = {name: reference_metrics.max_in_session(name, history, zone) for name in COUNTS}
    maxima |= {name: reference_metrics.peak(name, history, zone) for name in PEAKS}
    return {
        "days": {name: reference_metrics.count_by_day(name, history, zone) for name in COUNTS},
        "most": maxima,
        "first": {name: reference_metrics.variety(name, history, zone) for name in VARIETY},
    }


def differences(history: reference_metrics.ReferenceHistory, zone: tzinfo = BERLIN) -> Figures:
    """Metrics that differ from the reference, with both results."""
    measured, expected = by_metrics(history, zone), by_reference(history, zone)
    return {
        f"{kind} {name}": (figures[name], expected[kind][name])
        for kind, figures in measured.items()
        for name in figures
        if figures[name] != expected[kind][name]
    }


def load_history(path: Path) -> reference_metrics.ReferenceHistory:
    """Load a history from its file, with the kinds of its sessions."""
    with closing(sqlite3.connect(path)) as db:
        reasons = dict(db.execute("SELECT id, end_reason FROM sessions"))
        sessions = [
            SessionRow(row[0], kind_of(row[1], row[2], reasons.get(row[-1])), *row[2:])
            for row in db.execute(
                "SELECT id, model_config, source, coalesce(model, ''), started_at, ended_at,"
                " coalesce(end_reason, ''), title IS NOT NULL, input_tokens, output_tokens,"
                " cache_read_tokens, reasoning_tokens, coalesce(estimated_cost_usd, 0),"
                " parent_session_id FROM sessions"
            )
        ]
        messages: dict[str, list[MessageRow]] = defaultdict(list)
        for session_id, *row in db.execute(
            "SELECT session_id, id, role, timestamp, CAST(content AS BLOB), length(content),"
            " CAST(tool_calls AS BLOB), tool_name, tool_call_id FROM messages ORDER BY id"
        ):
            messages[session_id].append(MessageRow(*row))
    return reference_metrics.ReferenceHistory(sessions, dict(messages))


def kind_of(config: str, source: str, parent_end: str | None) -> str:
    marks = json.loads(config)
    if "_delegate_from" in marks:
        return "subagent"
    if source == "cron":
        return "scheduled"
    if "_branched_from" in marks:
        return "branch"
    return "continuation" if parent_end == "compression" else "conversation"


# --- tricky histories --------------------------------------------------------------------


def result_row(row_id: int, content: bytes, **columns: Any) -> MessageRow:
    return MessageRow(row_id, "tool", START + row_id, content, **columns)


def call_row(row_id: int, tool: str, **arguments: Any) -> MessageRow:
    calls = json.dumps([make_call("c1", tool, arguments, is_flat=False)]).encode()
    return MessageRow(row_id, "assistant", START + row_id, tool_calls=calls)


def single_session(*rows: MessageRow, model: str = "") -> reference_metrics.ReferenceHistory:
    return reference_metrics.ReferenceHistory(
        [SessionRow("s", model=model, started_at=START)], {"s": [*rows]}
    )


def branched(
    parent: list[MessageRow], rows: list[MessageRow]
) -> reference_metrics.ReferenceHistory:
    branch = SessionRow("b", kind="branch", started_at=START, parent_id="s")
    return reference_metrics.ReferenceHistory(
        [SessionRow("s", started_at=START), branch], {"s": parent, "b": rows}
    )


TRACED = json.dumps({"output": TRACE, "exit_code": 130}).encode()
TRICKY_HISTORIES = {
    # Ctrl-C in a Python program: 130 and a traceback.
    "interrupted with a traceback": single_session(result_row(1, TRACED, tool_name="terminal")),
    # The row names no tool; the call it answers does.
    "a read file holds a traceback": single_session(
        call_row(1, "read_file", path="a.log"), result_row(2, TRACE.encode(), call_id="c1")
    ),
    "a printed exit code, the tool known by the call": single_session(
        call_row(1, "terminal", command="make"), result_row(2, b"exit code: 2", call_id="c1")
    ),
    # A reply is not a copy of a user message.
    "the agent repeats what the user said before": branched(
        [MessageRow(1, "user", START, b"ok", 2)], [MessageRow(2, "assistant", START + 5, b"ok")]
    ),
    "an exit code beyond 64 bits": single_session(
        result_row(1, b'{"exit_code": 99999999999999999999}', tool_name="terminal")
    ),
}


# --- tests -------------------------------------------------------------------------------


def test_every_metric_has_a_reference() -> None:
    assert set(reference_metrics.COUNTS) == set(COUNTS)
    assert set(reference_metrics.PEAKS) == set(PEAKS)
    assert set(reference_metrics.VARIETY) == set(VARIETY)


@settings(max_examples=size(60, 120), deadline=None, suppress_health_check=list(HealthCheck))
@given(history=histories(), zone=st.sampled_from(ZONES))
def test_metrics_of_any_history_equal_the_reference(
    history: reference_metrics.ReferenceHistory, zone: tzinfo
) -> None:
    assert differences(history, zone) == {}


@pytest.mark.parametrize("step", STEPS)
def test_scenes_with_any_interval_equal_the_reference(step: float) -> None:
    for scene in SCENES:
        rows = [MessageRow(id=n, at=START + n * step, **row) for n, row in enumerate(scene, 1)]
        assert differences(single_session(*rows)) == {}


def test_printed_exit_codes_equal_the_reference() -> None:
    contents = [b"z" * n + b"\nexit code 3\n" + b"z" * n for n in range(130, 180)]
    rows = [result_row(n, text, tool_name="terminal") for n, text in enumerate(contents, 1)]
    assert differences(single_session(*rows)) == {}


def test_metrics_of_a_generated_history_equal_the_reference(tmp_path: Path) -> None:
    make(tmp_path / "generated.db", Size(300, 6_000), seed=3)
    history = load_history(tmp_path / "generated.db")
    assert len({session.kind for session in history.sessions}) == 5
    assert differences(history) == {}


@pytest.mark.parametrize("command", [command for command in COMMANDS if command])
def test_labels_equal_the_reference(command: str) -> None:
    assert list(command_labels(command)) == reference_metrics.shell_labels(command)


@pytest.mark.parametrize("command", TRICKY_COMMANDS)
def test_the_reference_labels_tricky_commands(command: str) -> None:
    assert reference_metrics.shell_labels(command) == TRICKY_COMMANDS[command]


@pytest.mark.parametrize("command", TRICKY_COMMANDS)
def test_tricky_commands(command: str) -> None:
    assert list(command_labels(command)) == TRICKY_COMMANDS[command]


@pytest.mark.parametrize("name", TRICKY_HISTORIES)
def test_tricky_histories(name: str) -> None:
    assert differences(TRICKY_HISTORIES[name]) == {}
