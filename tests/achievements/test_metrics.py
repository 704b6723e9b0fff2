"""Each metric on small sessions: events that count, and similar ones that do not."""

from __future__ import annotations

import pytest

from achievements.session_builder import MONDAY_NOON, SessionBuilder
from hermes_achievements.metrics import COUNTS, PEAKS, VARIETY

HOUR = 3600.0
DAY = 86_400.0
TRACE = 'Traceback (most recent call last):\n  File "a.py", line 1\nKeyError: 1'
MIDNIGHT = MONDAY_NOON - 12 * HOUR
BRANCH = {"kind": "branch"}


def shell(*commands: str) -> SessionBuilder:
    builder = SessionBuilder()
    for command in commands:
        builder.run_shell(command)
    return builder


def conversation(**session: object) -> SessionBuilder:
    return SessionBuilder(**session).send().reply()


COUNT_EXAMPLES: dict[str, list[tuple[SessionBuilder, int]]] = {
    "messages_sent": [
        (SessionBuilder().send().send(), 2),
        (SessionBuilder(kind="subagent").send(), 0),
        (SessionBuilder().send(is_observed=True), 0),  # messages of others in a group
    ],
    "characters_typed": [(SessionBuilder().send("four").send("größe"), 9)],
    "long_messages": [(SessionBuilder().send("x" * 2000).send("x" * 1999), 1)],
    "short_messages": [(SessionBuilder().send("ok").send("x" * 13), 1)],
    "replies": [(SessionBuilder().send().reply().run_shell("ls").reply(), 2)],
    "conversations": [
        (conversation(), 1),
        (conversation(kind="continuation"), 0),
        (conversation(kind="subagent"), 0),
        (SessionBuilder().reply(), 0),
    ],
    "branches": [(conversation(kind="branch"), 1), (conversation(), 0)],
    "continuations": [(conversation(kind="continuation"), 1), (conversation(), 0)],
    "subagent_runs": [(conversation(kind="subagent"), 1), (conversation(), 0)],
    "scheduled_runs": [(conversation(kind="scheduled"), 1), (conversation(), 0)],
    "titled": [(conversation(is_titled=True), 1), (conversation(), 0)],
    "clean_ends": [
        (conversation(ended_at=1.0, end_reason="cli_close"), 1),
        (conversation(ended_at=1.0, end_reason="crashed"), 0),
        (conversation(), 0),
    ],
    "returns_after_week": [
        (SessionBuilder().send().wait(7 * DAY).send().wait(6 * DAY).send(), 1),
        (SessionBuilder().send().wait(8 * DAY).reply(), 0),
    ],
    "returns_after_month": [
        (SessionBuilder().send().wait(30 * DAY).send().wait(29 * DAY).send(), 1)
    ],
    "weekend_conversations": [
        (conversation(at=MONDAY_NOON - 2 * DAY), 1),
        (conversation(), 0),
    ],
    "night_conversations": [
        (conversation(at=MIDNIGHT), 1),
        (conversation(at=MIDNIGHT + 5 * HOUR), 0),
    ],
    "dawn_conversations": [
        (conversation(at=MIDNIGHT + 5 * HOUR), 1),
        (conversation(at=MIDNIGHT + 7 * HOUR), 0),
    ],
    "lunch_conversations": [
        (conversation(), 1),
        (conversation(at=MONDAY_NOON + HOUR), 0),
    ],
    "evening_conversations": [
        (conversation(at=MONDAY_NOON + 8 * HOUR), 1),
        (conversation(), 0),
    ],
    "active_seconds": [(SessionBuilder().send().wait(99).reply().wait(HOUR).send().reply(), 101)],
    "pure_talks": [
        (_ten_messages := SessionBuilder(), 0),
    ],
    "one_shots": [
        (SessionBuilder().send().repeat(10, "ls").reply(), 1),
        (SessionBuilder().send().repeat(9, "ls").reply(), 0),
        (SessionBuilder().send().repeat(10, "ls").reply().send().repeat(10, "ls").reply(), 2),
        (
            SessionBuilder().send().repeat(10, "ls").reply().send(),
            1,
        ),  # later messages do not change it
    ],
    "tool_calls": [
        (
            SessionBuilder()
            .send()
            .run_shell("ls")
            .call_tool("patch")
            .call_tools(("a", {}), ("b", {})),
            4,
        )
    ],
    "parallel_batches": [
        (
            SessionBuilder()
            .call_tools(("a", {}), ("b", {}), ("c", {}))
            .call_tools(("a", {}), ("b", {})),
            1,
        )
    ],
    "tools_in_session": [(SessionBuilder().run_shell("ls").run_shell("ls").call_tool("patch"), 2)],
    "shell_commands": [
        (SessionBuilder().run_shell("ls").call_tool("bash", command="x").call_tool("patch"), 2)
    ],
    "background_jobs": [
        (
            SessionBuilder()
            .run_shell("serve", background=True)
            .run_shell("serve &")
            .run_shell("a && b"),
            2,
        )
    ],
    "files_read": [(SessionBuilder().call_tool("read_file", path="a").call_tool("thread_file"), 1)],
    "files_written": [
        (SessionBuilder().call_tool("write_file", path="a").call_tool("overwrite_file"), 1)
    ],
    "files_edited": [(SessionBuilder().call_tool("patch", path="a").call_tool("dispatch"), 1)],
    "file_searches": [
        (SessionBuilder().call_tool("search_files").call_tool("grep").call_tool("research"), 2)
    ],
    "files_touched": [
        (
            SessionBuilder()
            .call_tool("write_file", path="/a/b.py")
            .call_tool("patch", path="/a/./b.py")
            .call_tool("write_file", path=r"C:\x\b.py")
            .call_tool("read_file", path="/a/c.py"),
            2,
        )
    ],
    "languages_in_session": [
        (
            SessionBuilder()
            .call_tool("write_file", path="a.py")
            .call_tool("patch", path="b.py")
            .call_tool("patch", path="c.go"),
            2,
        )
    ],
    "web_searches": [
        (SessionBuilder().call_tool("web_search", query="x").call_tool("search_web_of_lies"), 1)
    ],
    "pages_read": [(SessionBuilder().call_tool("web_extract"), 1)],
    "browser_steps": [(SessionBuilder().call_tool("browser_click").call_tool("browser_vision"), 1)],
    "delegations": [
        (
            SessionBuilder()
            .call_tool("delegate_task", tasks=[{}, {}])
            .call_tool("delegate_task", goal="x"),
            3,
        )
    ],
    "jobs_scheduled": [
        (
            SessionBuilder()
            .call_tool("cronjob", action="create")
            .call_tool("cronjob", action="list")
            .call_tool("schedule", action="add")
            .call_tool("schedule", action="remind")
            .call_tool("schedule", action="remove"),
            3,
        )
    ],
    "memories_saved": [
        (SessionBuilder().call_tool("memory", action="add").call_tool("memory", action="read"), 1)
    ],
    "history_searches": [(SessionBuilder().call_tool("session_search", query="x"), 1)],
    "images_made": [(SessionBuilder().call_tool("image_generate"), 1)],
    "images_seen": [(SessionBuilder().call_tool("vision_analyze").call_tool("browser_vision"), 2)],
    "voices_made": [(SessionBuilder().call_tool("text_to_speech"), 1)],
    "code_runs": [(SessionBuilder().call_tool("execute_code"), 1)],
    "skills_used": [(SessionBuilder().call_tool("skill_view").call_tool("skills_list"), 1)],
    "skills_written": [
        (
            SessionBuilder()
            .call_tool("skill_manage", action="create")
            .call_tool("skill_manage", action="delete"),
            1,
        )
    ],
    "plans": [(SessionBuilder().call_tool("todo"), 1)],
    "questions_asked": [(SessionBuilder().call_tool("clarify"), 1)],
    "mcp_calls": [(SessionBuilder().call_tool("mcp_github_issues").call_tool("amcp_x"), 1)],
    "commits": [(shell("git commit -m x", 'echo "git commit"', "git -C /x commit"), 2)],
    "pushes": [(shell("cd a && git push origin main", "git pull"), 1)],
    "merges": [(shell("git merge x", "git rebase main", "git cherry-pick 1", "git log"), 3)],
    "git_rescues": [(shell("git stash", "git stash list", "git revert 1", "git bisect bad"), 3)],
    "git_tags": [(shell("git tag v1", "git tag -l", "git tag"), 1)],
    "test_runs": [
        (shell("pytest -q", "python3 -m pytest", "npm run test:unit", "cargo test", "cat test"), 4)
    ],
    "installs": [(shell("pip install x", "uv pip list", "npm ci", "sudo apt-get install -y y"), 3)],
    "builds": [(shell("make", "npm run build", "make test", "docker build ."), 3)],
    "checks": [(shell("uv run ruff check .", "mypy", "npx eslint .", "echo ruff"), 3)],
    "container_commands": [(shell("docker compose up -d", "podman ps", "ls docker"), 2)],
    "deploys": [(shell("kubectl get pods", "terraform apply", "ansible-playbook x.yml"), 3)],
    "database_commands": [(shell("psql -c 'select 1'", "sqlite3 a.db", "cat sqlite3"), 2)],
    "http_requests": [(shell("curl -s x | jq .", "wget x", "ls curl"), 2)],
    "remote_commands": [(shell("ssh host ls", "rsync a b", "cat ssh"), 2)],
    "successful_calls": [
        (SessionBuilder().run_shell("ls").run_shell("ls", 1).call_tool("patch"), 2)
    ],
    "failed_calls": [
        (SessionBuilder().run_shell("make", 2), 1),
        (SessionBuilder().call_tool("web_search", {"error": "no network"}), 1),
        (
            SessionBuilder().call_tool(
                "web_search", {"error": None, "results": ["an error occurred"]}
            ),
            0,
        ),
        (SessionBuilder().call_tool("patch", {"success": False}), 1),
        (SessionBuilder().call_tool("x", {"status": "failed"}), 1),
        (SessionBuilder().call_tool("terminal", TRACE, command="x"), 1),
        (SessionBuilder().call_tool("read_file", TRACE, path="log"), 0),
        (SessionBuilder().call_tool("terminal", "said: Traceback (most recent call last)"), 0),
        (SessionBuilder().run_shell("grep x a", 1), 0),  # exit code 1 of grep means no match
        (SessionBuilder().run_shell("grep x a", 2), 1),
        (SessionBuilder().call_tool("terminal", "working\nexit code: 3"), 1),
        (SessionBuilder().call_tool("terminal", '\n {"exit_code": 1}'), 1),
    ],
    "failed_commands": [
        (SessionBuilder().run_shell("x", 1).call_tool("patch", {"success": False}), 1)
    ],
    "missing_commands": [(SessionBuilder().run_shell("nope", 127).run_shell("x", 1), 1)],
    "interrupted_commands": [
        (SessionBuilder().run_shell("a", 124).run_shell("b", -9).run_shell("c", 1), 2)
    ],
    "tracebacks": [
        (SessionBuilder().run_shell("x", 1, f"a\n{TRACE}").run_shell("y", 1, f"a {TRACE[:20]}"), 1)
    ],
    "passed_tests": [
        (
            SessionBuilder()
            .run_shell("pytest")
            .run_shell("pytest && git push")
            .run_shell("pytest | tail"),
            2,
        ),
        (SessionBuilder().run_shell("pytest", 1).run_shell("pytest || true"), 0),
    ],
    "failed_tests": [
        (SessionBuilder().run_shell("cd a && pytest", 1).run_shell("pytest && git push", 1), 1),
        (SessionBuilder().run_shell("pytest"), 0),
    ],
    "recovered_calls": [
        (SessionBuilder().run_shell("a", 1).call_tool("patch").run_shell("b").run_shell("c"), 1)
    ],
    "stubborn_recoveries": [
        (SessionBuilder().repeat(10, "x", 1).run_shell("x"), 1),
        (SessionBuilder().repeat(9, "x", 1).run_shell("x"), 0),
        (SessionBuilder().repeat(10, "x", 1), 0),
    ],
    "test_comebacks": [
        (SessionBuilder().repeat(5, "pytest", 1).run_shell("ls").run_shell("pytest"), 1),
        (SessionBuilder().repeat(4, "pytest", 1).run_shell("pytest"), 0),
        (SessionBuilder().run_shell("pytest").repeat(5, "pytest", 1), 0),
    ],
    "red_green_commits": [
        (
            SessionBuilder()
            .run_shell("pytest", 1)
            .run_shell("pytest")
            .run_shell("git commit -m x"),
            1,
        ),
        (
            SessionBuilder()
            .run_shell("pytest")
            .run_shell("pytest", 1)
            .run_shell("git commit -m x"),
            0,
        ),
    ],
    "shipped": [
        (SessionBuilder().run_shell("pytest && git commit -m x && git push"), 1),
        (
            SessionBuilder().run_shell("git push").run_shell("git commit -m x").run_shell("pytest"),
            0,
        ),
    ],
    "quick_fixes": [
        (
            SessionBuilder()
            .run_shell("pytest", 1)
            .call_tool("patch", path="a")
            .run_shell("pytest"),
            1,
        ),
        (SessionBuilder().run_shell("pytest", 1).run_shell("pytest"), 0),
        (
            SessionBuilder()
            .run_shell("pytest", 1)
            .call_tool("patch", path="a")
            .wait(400)
            .run_shell("pytest"),
            0,
        ),
    ],
    "careful_edits": [
        (
            SessionBuilder()
            .call_tool("read_file", path="a")
            .call_tool("patch", path="a")
            .call_tool("patch", path="a")
            .call_tool("patch", path="b"),
            1,
        )
    ],
    "researched_writes": [
        (
            SessionBuilder()
            .call_tool("web_search")
            .call_tool("web_search")
            .call_tool("web_extract")
            .call_tool("write_file"),
            1,
        ),
        (SessionBuilder().call_tool("web_search").call_tool("write_file"), 0),
    ],
    "recalled_work": [
        (SessionBuilder().call_tool("session_search").call_tool("patch", path="a"), 1),
        (SessionBuilder().call_tool("patch", path="a").call_tool("session_search"), 0),
    ],
    "flawless_sessions": [
        (SessionBuilder().repeat(25, "ls"), 1),
        (SessionBuilder().repeat(24, "ls"), 0),
        (SessionBuilder().repeat(25, "ls").run_shell("x", 1), 1),  # later messages do not change it
        (SessionBuilder().repeat(24, "ls").run_shell("x", 1).repeat(24, "ls"), 0),
    ],
    "input_tokens": [(conversation(input_tokens=7), 7)],
    "output_tokens": [(conversation(output_tokens=7), 7)],
    "cached_tokens": [(conversation(cached_tokens=7), 7)],
    "reasoning_tokens": [(conversation(reasoning_tokens=7), 7)],
    "cost_cents": [(conversation(cost_usd=1.239), 124)],
    "well_cached": [
        (conversation(input_tokens=10_000, cached_tokens=40_000, ended_at=1.0), 1),
        (conversation(input_tokens=10_000, cached_tokens=40_000), 0),  # not ended
        (conversation(input_tokens=11_000, cached_tokens=40_000, ended_at=1.0), 0),
        (conversation(input_tokens=1_000, cached_tokens=4_000, ended_at=1.0), 0),
    ],
}
_interrupted = SessionBuilder()
for number in range(10):
    _ten_messages.send()
    _interrupted.send()
    if number == 5:
        _interrupted.run_shell("ls")
COUNT_EXAMPLES["pure_talks"] = [
    (_ten_messages, 1),
    (SessionBuilder().send().reply(), 0),
    (_interrupted, 0),
]

PEAK_EXAMPLES: dict[str, tuple[SessionBuilder, int]] = {
    "longest_message": (SessionBuilder().send("abc").send("abcde"), 5),
    "calls_at_once": (SessionBuilder().call_tools(("a", {}), ("b", {})).run_shell("ls"), 2),
    "clean_run": (SessionBuilder().repeat(3, "ls").run_shell("x", 1).repeat(2, "ls"), 3),
    "failures_overcome": (SessionBuilder().repeat(4, "x", 1).run_shell("ls").repeat(9, "x", 1), 4),
    "days_of_silence": (SessionBuilder().send().wait(3.5 * DAY).send().wait(9 * DAY).reply(), 3),
    "hours_open": (SessionBuilder().send().wait(5.5 * HOUR).send().wait(9 * HOUR).reply(), 5),
}
VARIETY_EXAMPLES: dict[str, tuple[SessionBuilder, set[str]]] = {
    "tool_kinds": (
        SessionBuilder().run_shell("ls").run_shell("ls").call_tool("patch"),
        {"terminal", "patch"},
    ),
    "models": (SessionBuilder(model="openrouter/anthropic/claude-4-20250514").send(), {"claude-4"}),
    "makers": (SessionBuilder(model="gpt-5-mini").send(), {"openai"}),
    "places": (SessionBuilder(source="telegram").send(), {"telegram"}),
    "agents": (SessionBuilder(source="codex").send(), {"codex"}),
    "project_agents": (SessionBuilder(source="cli", project="a1").send(), {"a1:hermes"}),
    "languages": (
        SessionBuilder()
        .call_tool("write_file", path="a.PY")
        .call_tool("patch", path="b.yml")
        .call_tool("read_file", path="c.go"),
        {"py", "yaml"},
    ),
    "programs": (shell("cd x && git log | head", "/usr/bin/git push"), {"git", "head"}),
    "hours": (SessionBuilder().send().wait(HOUR).send(), {"12", "13"}),
    "weekdays": (SessionBuilder().send().wait(DAY).send(), {"0", "1"}),
    "months": (SessionBuilder().send().wait(31 * DAY).send(), {"01", "02"}),
    "notable_days": (
        SessionBuilder(at=MONDAY_NOON - 4 * DAY).send().wait(43 * DAY).send(),
        {"new year", "friday the 13th"},
    ),
}


def test_every_metric_has_an_example() -> None:
    assert set(COUNT_EXAMPLES) == set(COUNTS)
    assert set(PEAK_EXAMPLES) == set(PEAKS)
    assert set(VARIETY_EXAMPLES) == set(VARIETY)


@pytest.mark.parametrize("name", COUNTS)
def test_a_count_equals_its_examples(name: str) -> None:
    for builder, expected in COUNT_EXAMPLES[name]:
        assert sum(amount for _, amount in COUNTS[name](builder.session())) == expected


@pytest.mark.parametrize("name", PEAKS)
def test_a_peak_is_the_largest(name: str) -> None:
    builder, expected = PEAK_EXAMPLES[name]
    assert max(amount for _, amount in PEAKS[name](builder.session())) == expected


@pytest.mark.parametrize("name", VARIETY)
def test_variety_collects_different_values(name: str) -> None:
    builder, expected = VARIETY_EXAMPLES[name]
    assert {value for _, value in VARIETY[name](builder.session())} == expected


def test_an_empty_session_has_no_events() -> None:
    empty = SessionBuilder().session()
    for metric in (*COUNTS.values(), *PEAKS.values(), *VARIETY.values()):
        assert not metric(empty)


@pytest.mark.parametrize("name", COUNTS)
def test_an_event_names_a_message_of_the_session(name: str) -> None:
    for builder, _ in COUNT_EXAMPLES[name]:
        session = builder.session()
        for fact, amount in COUNTS[name](session):
            assert any(fact is item for item in session.facts)
            assert amount > 0
