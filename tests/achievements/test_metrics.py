"""Each metric on a small history made by hand: what counts, and what looks like it."""

from __future__ import annotations

import pytest

from achievements.story import MONDAY_NOON, Story
from hermes_achievements.metrics import COUNTS, PEAKS, VARIETY

HOUR = 3600.0
DAY = 86_400.0
TRACE = 'Traceback (most recent call last):\n  File "a.py", line 1\nKeyError: 1'
MIDNIGHT = MONDAY_NOON - 12 * HOUR
BRANCH = {"kind": "branch"}


def shell(*commands: str) -> Story:
    story = Story()
    for command in commands:
        story.shell(command)
    return story


def conversation(**session: object) -> Story:
    return Story(**session).say().answer()


SUMS: dict[str, list[tuple[Story, int]]] = {
    "messages_sent": [
        (Story().say().say(), 2),
        (Story(kind="subagent").say(), 0),
        (Story().say(is_observed=True), 0),  # talk of others in a group
    ],
    "characters_typed": [(Story().say("four").say("größe"), 9)],
    "long_messages": [(Story().say("x" * 2000).say("x" * 1999), 1)],
    "short_messages": [(Story().say("ok").say("x" * 13), 1)],
    "replies": [(Story().say().answer().shell("ls").answer(), 2)],
    "conversations": [
        (conversation(), 1),
        (conversation(kind="continuation"), 0),
        (conversation(kind="subagent"), 0),
        (Story().answer(), 0),
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
        (Story().say().wait(7 * DAY).say().wait(6 * DAY).say(), 1),
        (Story().say().wait(8 * DAY).answer(), 0),
    ],
    "returns_after_month": [(Story().say().wait(30 * DAY).say().wait(29 * DAY).say(), 1)],
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
    "active_seconds": [(Story().say().wait(99).answer().wait(HOUR).say().answer(), 101)],
    "pure_talks": [
        (_ten := Story(), 0),
    ],
    "one_shots": [
        (Story().say().times(10, "ls").answer(), 1),
        (Story().say().times(9, "ls").answer(), 0),
        (Story().say().times(10, "ls").answer().say().times(10, "ls").answer(), 2),
        (Story().say().times(10, "ls").answer().say(), 1),  # it stays done
    ],
    "tool_calls": [(Story().say().shell("ls").use("patch").call(("a", {}), ("b", {})), 4)],
    "parallel_batches": [
        (Story().call(("a", {}), ("b", {}), ("c", {})).call(("a", {}), ("b", {})), 1)
    ],
    "tools_in_session": [(Story().shell("ls").shell("ls").use("patch"), 2)],
    "shell_commands": [(Story().shell("ls").use("bash", command="x").use("patch"), 2)],
    "background_jobs": [
        (Story().shell("serve", background=True).shell("serve &").shell("a && b"), 2)
    ],
    "files_read": [(Story().use("read_file", path="a").use("thread_file"), 1)],
    "files_written": [(Story().use("write_file", path="a").use("overwrite_file"), 1)],
    "files_edited": [(Story().use("patch", path="a").use("dispatch"), 1)],
    "file_searches": [(Story().use("search_files").use("grep").use("research"), 2)],
    "files_touched": [
        (
            Story()
            .use("write_file", path="/a/b.py")
            .use("patch", path="/a/./b.py")
            .use("write_file", path=r"C:\x\b.py")
            .use("read_file", path="/a/c.py"),
            2,
        )
    ],
    "languages_in_session": [
        (
            Story()
            .use("write_file", path="a.py")
            .use("patch", path="b.py")
            .use("patch", path="c.go"),
            2,
        )
    ],
    "web_searches": [(Story().use("web_search", query="x").use("search_web_of_lies"), 1)],
    "pages_read": [(Story().use("web_extract"), 1)],
    "browser_steps": [(Story().use("browser_click").use("browser_vision"), 1)],
    "delegations": [
        (Story().use("delegate_task", tasks=[{}, {}]).use("delegate_task", goal="x"), 3)
    ],
    "jobs_scheduled": [(Story().use("cronjob", action="create").use("cronjob", action="list"), 1)],
    "memories_saved": [(Story().use("memory", action="add").use("memory", action="read"), 1)],
    "history_searches": [(Story().use("session_search", query="x"), 1)],
    "images_made": [(Story().use("image_generate"), 1)],
    "images_seen": [(Story().use("vision_analyze").use("browser_vision"), 2)],
    "voices_made": [(Story().use("text_to_speech"), 1)],
    "code_runs": [(Story().use("execute_code"), 1)],
    "skills_used": [(Story().use("skill_view").use("skills_list"), 1)],
    "skills_written": [
        (Story().use("skill_manage", action="create").use("skill_manage", action="delete"), 1)
    ],
    "plans": [(Story().use("todo"), 1)],
    "questions_asked": [(Story().use("clarify"), 1)],
    "mcp_calls": [(Story().use("mcp_github_issues").use("amcp_x"), 1)],
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
    "successful_calls": [(Story().shell("ls").shell("ls", 1).use("patch"), 2)],
    "failed_calls": [
        (Story().shell("make", 2), 1),
        (Story().use("web_search", {"error": "no network"}), 1),
        (Story().use("web_search", {"error": None, "results": ["an error occurred"]}), 0),
        (Story().use("patch", {"success": False}), 1),
        (Story().use("x", {"status": "failed"}), 1),
        (Story().use("terminal", TRACE, command="x"), 1),
        (Story().use("read_file", TRACE, path="log"), 0),
        (Story().use("terminal", "said: Traceback (most recent call last)"), 0),
        (Story().shell("grep x a", 1), 0),  # an answer
        (Story().shell("grep x a", 2), 1),
        (Story().use("terminal", "working\nexit code: 3"), 1),
        (Story().use("terminal", '\n {"exit_code": 1}'), 1),
    ],
    "failed_commands": [(Story().shell("x", 1).use("patch", {"success": False}), 1)],
    "missing_commands": [(Story().shell("nope", 127).shell("x", 1), 1)],
    "interrupted_commands": [(Story().shell("a", 124).shell("b", -9).shell("c", 1), 2)],
    "tracebacks": [(Story().shell("x", 1, f"a\n{TRACE}").shell("y", 1, f"a {TRACE[:20]}"), 1)],
    "passed_tests": [
        (Story().shell("pytest").shell("pytest && git push").shell("pytest | tail"), 2),
        (Story().shell("pytest", 1).shell("pytest || true"), 0),
    ],
    "failed_tests": [
        (Story().shell("cd a && pytest", 1).shell("pytest && git push", 1), 1),
        (Story().shell("pytest"), 0),
    ],
    "recovered_calls": [(Story().shell("a", 1).use("patch").shell("b").shell("c"), 1)],
    "stubborn_recoveries": [
        (Story().times(10, "x", 1).shell("x"), 1),
        (Story().times(9, "x", 1).shell("x"), 0),
        (Story().times(10, "x", 1), 0),
    ],
    "test_comebacks": [
        (Story().times(5, "pytest", 1).shell("ls").shell("pytest"), 1),
        (Story().times(4, "pytest", 1).shell("pytest"), 0),
        (Story().shell("pytest").times(5, "pytest", 1), 0),
    ],
    "red_green_commits": [
        (Story().shell("pytest", 1).shell("pytest").shell("git commit -m x"), 1),
        (Story().shell("pytest").shell("pytest", 1).shell("git commit -m x"), 0),
    ],
    "shipped": [
        (Story().shell("pytest && git commit -m x && git push"), 1),
        (Story().shell("git push").shell("git commit -m x").shell("pytest"), 0),
    ],
    "quick_fixes": [
        (Story().shell("pytest", 1).use("patch", path="a").shell("pytest"), 1),
        (Story().shell("pytest", 1).shell("pytest"), 0),
        (Story().shell("pytest", 1).use("patch", path="a").wait(400).shell("pytest"), 0),
    ],
    "careful_edits": [
        (
            Story()
            .use("read_file", path="a")
            .use("patch", path="a")
            .use("patch", path="a")
            .use("patch", path="b"),
            1,
        )
    ],
    "researched_writes": [
        (Story().use("web_search").use("web_search").use("web_extract").use("write_file"), 1),
        (Story().use("web_search").use("write_file"), 0),
    ],
    "recalled_work": [
        (Story().use("session_search").use("patch", path="a"), 1),
        (Story().use("patch", path="a").use("session_search"), 0),
    ],
    "flawless_sessions": [
        (Story().times(25, "ls"), 1),
        (Story().times(24, "ls"), 0),
        (Story().times(25, "ls").shell("x", 1), 1),  # it stays done
        (Story().times(24, "ls").shell("x", 1).times(24, "ls"), 0),
    ],
    "input_tokens": [(conversation(input_tokens=7), 7)],
    "output_tokens": [(conversation(output_tokens=7), 7)],
    "cached_tokens": [(conversation(cached_tokens=7), 7)],
    "reasoning_tokens": [(conversation(reasoning_tokens=7), 7)],
    "cost_cents": [(conversation(cost_usd=1.239), 124)],
    "well_cached": [
        (conversation(input_tokens=10_000, cached_tokens=40_000, ended_at=1.0), 1),
        (conversation(input_tokens=10_000, cached_tokens=40_000), 0),  # not over yet
        (conversation(input_tokens=11_000, cached_tokens=40_000, ended_at=1.0), 0),
        (conversation(input_tokens=1_000, cached_tokens=4_000, ended_at=1.0), 0),
    ],
}
_interrupted = Story()
for number in range(10):
    _ten.say()
    _interrupted.say()
    if number == 5:
        _interrupted.shell("ls")
SUMS["pure_talks"] = [
    (_ten, 1),
    (Story().say().answer(), 0),
    (_interrupted, 0),
]

LARGEST: dict[str, tuple[Story, int]] = {
    "longest_message": (Story().say("abc").say("abcde"), 5),
    "calls_at_once": (Story().call(("a", {}), ("b", {})).shell("ls"), 2),
    "clean_run": (Story().times(3, "ls").shell("x", 1).times(2, "ls"), 3),
    "failures_overcome": (Story().times(4, "x", 1).shell("ls").times(9, "x", 1), 4),
    "days_of_silence": (Story().say().wait(3.5 * DAY).say().wait(9 * DAY).answer(), 3),
    "hours_open": (Story().say().wait(5.5 * HOUR).say().wait(9 * HOUR).answer(), 5),
}
DIFFERENT: dict[str, tuple[Story, set[str]]] = {
    "tool_kinds": (Story().shell("ls").shell("ls").use("patch"), {"terminal", "patch"}),
    "models": (Story(model="openrouter/anthropic/claude-4-20250514").say(), {"claude-4"}),
    "makers": (Story(model="gpt-5-mini").say(), {"openai"}),
    "places": (Story(source="telegram").say(), {"telegram"}),
    "languages": (
        Story()
        .use("write_file", path="a.PY")
        .use("patch", path="b.yml")
        .use("read_file", path="c.go"),
        {"py", "yaml"},
    ),
    "programs": (shell("cd x && git log | head", "/usr/bin/git push"), {"git", "head"}),
    "hours": (Story().say().wait(HOUR).say(), {"12", "13"}),
    "weekdays": (Story().say().wait(DAY).say(), {"0", "1"}),
    "months": (Story().say().wait(31 * DAY).say(), {"01", "02"}),
    "notable_days": (
        Story(at=MONDAY_NOON - 4 * DAY).say().wait(43 * DAY).say(),
        {"new year", "friday the 13th"},
    ),
}


def test_every_metric_has_an_example_made_by_hand() -> None:
    assert set(SUMS) == set(COUNTS)
    assert set(LARGEST) == set(PEAKS)
    assert set(DIFFERENT) == set(VARIETY)


@pytest.mark.parametrize("name", COUNTS)
def test_a_count_counts_what_it_says(name: str) -> None:
    for story, expected in SUMS[name]:
        assert sum(amount for _, amount in COUNTS[name](story.session())) == expected


@pytest.mark.parametrize("name", PEAKS)
def test_a_peak_is_the_largest(name: str) -> None:
    story, expected = LARGEST[name]
    assert max(amount for _, amount in PEAKS[name](story.session())) == expected


@pytest.mark.parametrize("name", VARIETY)
def test_variety_collects_different_values(name: str) -> None:
    story, expected = DIFFERENT[name]
    assert {value for _, value in VARIETY[name](story.session())} == expected


def test_nothing_comes_of_nothing() -> None:
    nothing = Story().session()
    for metric in (*COUNTS.values(), *PEAKS.values(), *VARIETY.values()):
        assert not metric(nothing)


@pytest.mark.parametrize("name", COUNTS)
def test_an_event_names_a_message_of_the_session(name: str) -> None:
    for story, _ in SUMS[name]:
        session = story.session()
        for fact, amount in COUNTS[name](session):
            assert any(fact is item for item in session.facts)
            assert amount > 0
