"""Hypothesis strategies for any history, with commands and results that are easy to misread."""

from __future__ import annotations

import json
import sys
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from hypothesis import strategies as st

from achievements import reference_metrics
from hermes_achievements.scan.history import ScannedMessage, ScannedSession

# The benchmarks are programs, not a package: their folder is put on the path.
sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmarks"))

from history.texts import COMMANDS as SAMPLE_COMMANDS

if TYPE_CHECKING:
    from collections.abc import Iterator

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


def session_rows(name: str, parent: str | None) -> st.SearchStrategy[ScannedSession]:
    single_session = ["conversation", "conversation", "scheduled", "subagent"]
    tokens = st.sampled_from([0, 10_000, 40_000, 160_000])
    return st.builds(
        ScannedSession,
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
    sessions: list[ScannedSession] = []
    messages: dict[str, list[ScannedMessage]] = {}
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
) -> Iterator[ScannedMessage]:
    steps = draw(st.lists(st.sampled_from(STEPS), min_size=1, max_size=8))
    for number, row in enumerate(rows):
        now += steps[number % len(steps)]
        yield ScannedMessage(**(row | {"id": next(ids), "at": row.get("at", now)}))
