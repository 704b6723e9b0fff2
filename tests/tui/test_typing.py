"""What a key press costs: typing does not lay out the screen again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from textual.screen import Screen

from hermes_tui.prompt import Prompt
from hermes_tui.status import StatusBar
from support.screens import SIZE

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_state import SessionDB
    from hermes_tui.app import HermesApp

    Open = Callable[..., HermesApp]


@pytest.fixture
def layouts(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The layouts of the screen, each of which visits every message that is shown."""
    done: list[str] = []
    lay_out = Screen._refresh_layout

    def counted(screen: Screen[None], *arguments: object, **options: object) -> None:
        done.append(str(screen))
        lay_out(screen, *arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(Screen, "_refresh_layout", counted)
    return done


async def test_typing_does_not_lay_out_the_conversation(
    opened: Open, db: SessionDB, layouts: list[str]
) -> None:
    session_id = db.create_session("long", "tui")
    db.append_messages_batch(session_id, [{"role": "user", "content": f"{n}"} for n in range(50)])
    app = opened(session_id="long")
    async with app.run_test(size=SIZE) as pilot:
        await pilot.pause()
        layouts.clear()
        await pilot.press(*"a few words", "backspace", "left", "right")
        await pilot.pause()
        assert app.query_one(Prompt).text == "a few word"
        assert layouts == []


async def test_the_clock_of_a_running_turn_does_not_lay_out_the_conversation(
    opened: Open, layouts: list[str]
) -> None:
    app = opened()
    async with app.run_test(size=SIZE) as pilot:
        await pilot.pause()
        layouts.clear()
        status = app.query_one(StatusBar)
        status.start()
        status.set_note("Rate limited; retrying")
        await pilot.pause()
        assert "retrying" in str(status.render())
        assert layouts == []
