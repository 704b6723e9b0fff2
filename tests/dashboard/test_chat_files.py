"""Files in the chat of a page: which images are attached, and what may be restored."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from support.chat_page import page
from support.checkpoints import change_in_turn

if TYPE_CHECKING:
    from support.dashboards import RunningDashboard

PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
    "1f15c4890000000d49444154789c6360606060000000050001a5f645400000000049454e44ae426082"
)


def test_one_of_several_images_is_removed(
    served: RunningDashboard, serve: Any, tmp_path: Path
) -> None:
    model = serve("[{say: Seen.}]")
    for name in ("a.png", "b.png"):
        (tmp_path / name).write_bytes(PIXEL)
    with page(served) as client:
        client.open(model=model)
        for name in ("a.png", "b.png", "b.png"):
            attached = client.call("image.attach", path=str(tmp_path / name))["attached"]
            assert attached == name
        assert client.call("image.detach", name="b.png") == {"count": 2}
        assert client.call("image.detach", name="gone.png") == {"count": 2}
        assert client.call("image.detach", name="a.png") == {"count": 1}
        assert client.call("image.detach") == {"count": 0}


@pytest.fixture
def changed_folder(served: RunningDashboard) -> Path:
    """A folder below which the shell of the user reads a file when it starts."""
    del served
    folder = Path.home() / ".config"
    (folder / "fish").mkdir(parents=True)
    (folder / "fish" / "config.fish").write_text("set evil\n")
    (folder / "notes.txt").write_text("old\n")
    return folder


def test_a_page_restores_only_what_the_agent_may_write_unasked(
    served: RunningDashboard, serve: Any, changed_folder: Path
) -> None:
    model = serve("[{say: Hello.}]")
    start_up, notes = changed_folder / "fish" / "config.fish", changed_folder / "notes.txt"

    def change() -> None:
        start_up.write_text("set good\n")
        notes.write_text("new\n")

    with page(served) as client:
        stored = client.open(model=model, cwd=str(changed_folder))["stored_session_id"]
        client.call("prompt.submit", text="hi")
        client.wait_for("message.complete")
        record = change_in_turn(changed_folder, change, stored, 0)
        assert record is not None
        number = record.number
        forced = {"number": number, "force": "fish/config.fish", "within_permissions": False}
        preview = client.call("checkpoints.preview", number=number, within_permissions=False)
        problems = {file["path"]: file["problem"] for file in preview["files"]}
        assert problems["notes.txt"] == ""
        assert "hermes checkpoints restore" in problems["fish/config.fish"]
        assert client.call("checkpoints.restore", **forced)["restored"] == []
        result = client.call("checkpoints.restore", number=number)
        assert result["restored"] == ["notes.txt"]
        for name, argument in (("checkpoints", f"restore {number}"), ("Undo", "1 Files")):
            sent = client.send("command.dispatch", session_id=client.live, name=name, arg=argument)
            assert "panel Changed files" in client.answer(sent)["error"]["message"]
    assert (start_up.read_text(), notes.read_text()) == ("set good\n", "old\n")
