"""The working folder of a chat on the page: shown, chosen, and never all files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hermes_core.config.file import ConfigFile
from support.chat_page import page
from support.daemons import stopping_daemon
from support.dashboards import dashboard, dashboard_context
from support.model_servers import model_argument, model_servers

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx2 as httpx

    from hermes_state import SessionDB
    from support.dashboards import RunningDashboard


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def served(db: SessionDB, project: Path) -> Iterator[RunningDashboard]:
    """A dashboard that was started in the folder of a project."""
    with dashboard(dashboard_context(db, start_folder=project)) as running:
        yield running


@pytest.fixture
def client(served: RunningDashboard) -> httpx.Client:
    return served.client


@pytest.fixture
def model() -> Iterator[str]:
    with stopping_daemon(), model_servers() as start:
        server = start("[{say: Hello.}]")
        ConfigFile.of_home().set("llm.base_url", server.base_url)
        yield model_argument(server)


def test_a_chat_works_where_the_dashboard_was_started(
    served: RunningDashboard, model: str, project: Path
) -> None:
    with page(served) as chat:
        assert chat.open(model=model)["info"]["cwd"] == str(project)


@pytest.mark.parametrize("start", ["/", "~", "/nonexistent"])
def test_a_dashboard_started_elsewhere_has_a_folder_of_its_own(
    db: SessionDB, hermes_home: Path, start: str
) -> None:
    folder = Path(start).expanduser()
    with dashboard(dashboard_context(db, start_folder=folder)) as running:
        default = running.client.get("/api/workspaces").json()["default"]
    assert default == str(hermes_home.resolve() / "workspaces" / "owner")
    assert Path(default).is_dir()


def test_another_folder_can_be_chosen(served: RunningDashboard, model: str, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    with page(served) as chat:
        assert chat.open(model=model, cwd=str(other))["info"]["cwd"] == str(other)
        deeper = other / "deeper"
        deeper.mkdir()
        assert chat.call("session.cwd.set", cwd=str(deeper))["cwd"] == str(deeper)


@pytest.mark.parametrize(
    "folder", ["/", "~/..", "{hermes}", "{hermes}/run", "relative", "/no/such"]
)
def test_some_folders_are_never_accepted(
    served: RunningDashboard, model: str, hermes_home: Path, folder: str
) -> None:
    (hermes_home / "run").mkdir(exist_ok=True)
    name = folder.format(hermes=hermes_home)
    refused = served.client.post("/api/workspaces/check", json={"path": name, "accept_home": True})
    assert refused.status_code == 400, refused.text
    with page(served) as chat:
        chat.send("session.create", model=model, cwd=name, accept_home=True)
        assert refused.json()["detail"] in chat.error()["message"]
        chat.open(model=model)
        chat.send("session.cwd.set", session_id=chat.live, cwd=name, accept_home=True)
        assert refused.json()["detail"] in chat.error()["message"]


def test_the_home_folder_needs_a_confirmation(served: RunningDashboard, model: str) -> None:
    asked = served.client.post("/api/workspaces/check", json={"path": "~"})
    assert (asked.status_code, "home folder" in asked.json()["detail"]) == (409, True)
    with page(served) as chat:
        chat.send("session.create", model=model, cwd="~")
        assert "home folder" in chat.error()["message"]
        opened = chat.open(model=model, cwd="~", accept_home=True)
        assert opened["info"]["cwd"] == str(Path.home().resolve())


def test_a_conversation_is_continued_in_its_folder(
    served: RunningDashboard, model: str, db: SessionDB, tmp_path: Path, project: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    for name, folder in (("here", str(other)), ("root", "/"), ("gone", "/no/such/folder")):
        db.create_session(name, "cli", cwd=folder)
        db.append_message(name, "user", "hello")
    for name, expected in (("here", other), ("root", project), ("gone", project)):
        with page(served) as chat:
            opened = chat.open("session.resume", session_id=name, model=model)
            assert opened["info"]["cwd"] == str(expected)


def test_folders_of_recent_conversations_are_offered(
    client: httpx.Client, db: SessionDB, tmp_path: Path, project: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    for number, folder in enumerate([str(other), "/", str(project), "/no/such", str(other)]):
        db.create_session(f"s{number}", "cli", cwd=folder)
        db.append_message(f"s{number}", "user", "hello")
    listed = client.get("/api/workspaces").json()
    assert listed["default"] == str(project)
    assert sorted(listed["recent"]) == sorted([str(other), str(project)])
