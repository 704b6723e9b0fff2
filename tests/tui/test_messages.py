"""How messages, tool calls and notices are shown, what is pasted, and when the bell rings."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from textual import events

from hermes_tui.approval_dialog import ApprovalDialog
from hermes_tui.dialogs import MIN_VISIBLE_SECONDS
from hermes_tui.messages import AgentMessage, NoticeLine, ToolRow, UserMessage
from hermes_tui.notifications import NotificationSettings
from hermes_tui.prompt import Prompt
from hermes_tui.status import StatusBar
from support.screens import (
    SIZE,
    agent_texts,
    is_idle,
    notice_texts,
    submit,
    submit_and_wait,
    wait_for,
    wait_for_screen,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from hermes_tui.app import HermesApp

    Open = Callable[..., HermesApp]

SLOW = "one two three four five six seven eight nine ten eleven twelve"
PNG_START = b"\x89PNG\r\n\x1a\n"


async def test_a_notice_does_not_split_the_answer(opened: Open) -> None:
    app = opened(f"[{{say: {SLOW}, pause: 0.2}}]")
    async with app.run_test(size=SIZE) as pilot:
        await submit(pilot, "count")
        await wait_for(pilot, lambda: "two" in "".join(agent_texts(app)))
        await submit(pilot, "/title numbers")
        await wait_for(pilot, lambda: "numbers" in "".join(notice_texts(app)))
        await wait_for(pilot, lambda: is_idle(app))
        assert agent_texts(app) == [SLOW]
        kinds = [type(child) for child in app.transcript.children][-2:]
        assert kinds == [AgentMessage, NoticeLine]


async def test_input_during_a_turn_stays_below_what_is_being_written(opened: Open) -> None:
    app = opened(f"[{{say: {SLOW}, pause: 0.2}}, {{say: Later.}}]")
    async with app.run_test(size=SIZE) as pilot:
        await submit(pilot, "count")
        await wait_for(pilot, lambda: "two" in "".join(agent_texts(app)))
        await submit(pilot, "and then?")
        await wait_for(pilot, lambda: "Later." in agent_texts(app))
        await wait_for(pilot, lambda: is_idle(app))
        assert agent_texts(app) == [SLOW, "Later."]
        texts = [
            child.text if isinstance(child, UserMessage) else child.source
            for child in app.transcript.children
            if isinstance(child, UserMessage | AgentMessage)
        ]
        assert texts == ["count", SLOW, "and then?", "Later."]


async def test_a_denied_call_has_no_duration(opened: Open) -> None:
    call = "{name: terminal, arguments: {command: rm -rf /var/tmp/nothing}}"
    app = opened(f"[{{calls: [{call}]}}, {{say: Fine.}}]")
    async with app.run_test(size=SIZE) as pilot:
        await submit(pilot, "go")
        await wait_for_screen(pilot, ApprovalDialog)
        await pilot.pause(MIN_VISIBLE_SECONDS + 0.2)
        await pilot.press("d")
        await wait_for(pilot, lambda: is_idle(app))
        assert str(app.query_one(ToolRow).render()) == (
            "✗ terminal rm -rf /var/tmp/nothing  denied"
        )


async def test_a_long_message_is_shown_in_part(opened: Open) -> None:
    app = opened("[{say: Read.}]")
    async with app.run_test(size=SIZE) as pilot:
        prompt = app.query_one(Prompt)
        prompt.post_message(events.Paste("".join(f"line {n}\n" for n in range(200))))
        await wait_for(pilot, lambda: prompt.text == "[pasted text #1, 200 lines]")
        await pilot.press("backspace")
        assert prompt.text == ""
        prompt.post_message(events.Paste("".join(f"line {n}\n" for n in range(200))))
        await wait_for(pilot, lambda: prompt.text == "[pasted text #2, 200 lines]")
        await pilot.press("enter")
        await wait_for(pilot, lambda: agent_texts(app) == ["Read."])
        message = app.query_one(UserMessage)
        assert str(message.render()).endswith("line 7\n… 192 more lines")
        message.focus()
        await pilot.press("enter")
        assert "line 199" in str(message.render())


@pytest.mark.parametrize(
    ("data", "reason"), [(b"", "is empty (0 bytes)"), (PNG_START + b"...", "damaged")]
)
async def test_a_broken_image_is_refused(
    opened: Open, tmp_path: Path, data: bytes, reason: str
) -> None:
    (tmp_path / "shot.png").write_bytes(data)
    app = opened()
    async with app.run_test(size=SIZE) as pilot:
        app.query_one(Prompt).post_message(events.Paste(str(tmp_path / "shot.png")))
        await wait_for(pilot, lambda: reason in "".join(notice_texts(app)))
        assert "attached" not in str(app.query_one(StatusBar).render())


async def test_a_picture_of_the_clipboard_is_attached_and_shown(
    opened: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    (tmp_path / "clipboard").write_bytes(b"GIF89a...;")
    program = programs / "xclip"
    program.write_text(f'#!/bin/sh\ncase "$*" in *image/png*) cat {tmp_path}/clipboard;; esac\n')
    program.chmod(0o755)
    monkeypatch.setattr("hermes_core.system_programs.SYSTEM_FOLDERS", (str(programs), "/usr/bin"))
    monkeypatch.setenv("DISPLAY", ":9")
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    app = opened("[{say: Seen.}]")
    async with app.run_test(size=SIZE) as pilot:
        await pilot.press("ctrl+v")
        await wait_for(pilot, lambda: "1 image attached" in str(app.query_one(StatusBar).render()))
        await submit_and_wait(pilot, "look")
        assert "\n+ image pasted-" in str(app.query_one(UserMessage).render())
        app.conversation.reload()
        await app.show_all()
        assert "\n+ image, " in str(app.query_one(UserMessage).render())


@pytest.mark.parametrize(
    ("settings", "has_focus", "rings"),
    [
        (NotificationSettings("bell", 0), False, 1),
        (NotificationSettings("bell", 0), None, 1),
        (NotificationSettings("bell", 0), True, 0),
        (NotificationSettings("bell", 3600), False, 0),
        (NotificationSettings("off", 0), False, 0),
    ],
)
async def test_the_bell_rings_after_a_long_turn_elsewhere(
    opened: Open,
    monkeypatch: pytest.MonkeyPatch,
    settings: NotificationSettings,
    has_focus: bool | None,
    rings: int,
) -> None:
    app = opened("[{say: Done.}]", notification=settings)
    rung: list[bool] = []
    monkeypatch.setattr(app, "bell", lambda: rung.append(True))
    async with app.run_test(size=SIZE) as pilot:
        if has_focus is not None:
            app.post_message(events.AppFocus() if has_focus else events.AppBlur())
            await pilot.pause()
        await submit_and_wait(pilot, "go")
        assert len(rung) == rings


async def test_the_status_shows_the_key_for_help_in_80_columns(opened: Open) -> None:
    app = opened("[{say: Done.}]")
    async with app.run_test(size=(80, 24)) as pilot:
        await submit_and_wait(pilot, "/title a title that takes all of its thirty columns here")
        await submit_and_wait(pilot, "go")
        status = app.query_one(StatusBar)
        shown = str(status.render())
        assert shown.endswith("F1 keys")
        assert len(shown) <= status.content_size.width


TABLE_AND_TASKS = """\
| name | count | kind |
| :--- | ----: | :--: |
| one of many | 5 | a |
| b | 1234 | wide kind |
| c | 7 | z |

- [ ] open
- [x] done
- [link](x) and [ ]
- plain

1. [X] first
"""


def shown_lines(app: HermesApp) -> list[str]:
    """The lines of the answer on the screen."""
    lines = app.screen._compositor.render_strips()
    return ["".join(segment.text for segment in line).rstrip() for line in lines]


@pytest.mark.parametrize("is_streamed", [False, True])
async def test_tables_are_aligned_and_tasks_have_boxes(opened: Open, *, is_streamed: bool) -> None:
    app = opened()
    async with app.run_test(size=(60, 40)) as pilot:
        if is_streamed:
            for line in TABLE_AND_TASKS.splitlines(keepends=True):
                await app.transcript.stream(line)
                await pilot.pause(0.02)
            await app.transcript.finish_answer()
        else:
            await app.transcript.add(AgentMessage(TABLE_AND_TASKS))
        await wait_for(pilot, lambda: "1. ☑ first" in "\n".join(shown_lines(app)))
        text = "\n".join(shown_lines(app))
        rows = [line.split("│")[1:-1] for line in text.splitlines() if line.count("│") == 4]
        names, counts, kinds = zip(*rows, strict=True)
        assert {len(name) - len(name.lstrip()) for name in names} == {1}
        assert {len(count) - len(count.rstrip()) for count in counts} == {1}
        for kind in kinds:
            before, after = len(kind) - len(kind.lstrip()), len(kind) - len(kind.rstrip())
            assert abs(before - after) <= 1
        assert [count.strip() for count in counts] == ["count", "5", "1234", "7"]
        for line in ("☐ open", "☑ done", "• link and [ ]", "• plain", "1. ☑ first"):
            assert line in text


async def test_an_answer_after_a_stop_hook_is_shown_separately(
    opened: Open, hermes_home: Path
) -> None:
    hook = {"type": "command", "command": "test -e seen || { touch seen; echo more >&2; exit 2; }"}
    config = {"hooks": {"Stop": [{"hooks": [hook]}]}}
    (hermes_home / "config.yaml").write_text(json.dumps(config))
    app = opened("[{say: First.}, {say: Second.}]")
    async with app.run_test(size=SIZE) as pilot:
        await submit_and_wait(pilot, "go")
        assert agent_texts(app) == ["First.", "Second."]
        assert "A hook continues the turn: more" in notice_texts(app)
