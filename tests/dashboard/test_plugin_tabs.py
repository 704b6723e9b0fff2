"""Tabs of plugins: discovery, files, and isolation of errors."""

from __future__ import annotations

import re
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from hermes_core.config.file import ConfigFile
from hermes_dashboard.auth import gate
from hermes_dashboard.plugins import apis
from support.browsers import ROOT
from support.dashboards import dashboard, dashboard_context, raw_request, wait_until
from support.plugin_folders import make_dashboard_plugin as plugin
from support.waiting import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from hermes_state import SessionDB
    from support.dashboards import RunningDashboard

# FastAPI puts this warning off while it makes routes, for all threads at once; plugins are
# loaded in several.
pytestmark = pytest.mark.filterwarnings(
    "ignore::pydantic.warnings.UnsupportedFieldAttributeWarning"
)

GOOD = """
from fastapi import APIRouter, HTTPException
router = APIRouter()

@router.get("/hello")
def hello(name: str = "you") -> dict[str, str]:
    return {"hello": name}

@router.post("/enable")
def mine() -> dict[str, str]:
    return {"enable": "the plugin's own"}

@router.get("/breaks")
def breaks() -> None:
    raise RuntimeError("it is broken")

@router.get("/breaks-later")
async def breaks_later() -> None:
    raise ValueError("asynchronously")

@router.get("/gone")
def gone() -> None:
    raise HTTPException(410, "It was here once.")
"""


pytestmark = pytest.mark.usefixtures("plugin_modules_removed")


@contextmanager
def serving(db: SessionDB, bundled: Path, *enabled: str) -> Iterator[RunningDashboard]:
    if enabled:
        ConfigFile.of_home().set("plugins.enabled", ",".join(enabled))
    bundled.mkdir(exist_ok=True)
    with dashboard(dashboard_context(db), bundled=bundled) as running:
        yield running


def listed(served: RunningDashboard) -> dict[str, dict[str, Any]]:
    return {item["name"]: item for item in served.client.get("/api/dashboard/plugins").json()}


def test_achievements_are_bundled(served: RunningDashboard) -> None:
    result = listed(served)["hermes-achievements"]
    assert result["tab"]["path"] == "/achievements"
    assert result["source"] == "bundled"
    assert result["has_api"]
    assert result["error"] is None
    response = served.client.get("/api/plugins/hermes-achievements/scan-status")
    assert response.json()["state"] == "idle"
    schema = served.client.get("/api/plugins/hermes-achievements/openapi.json").json()
    assert "/achievements" in schema["paths"]


def test_a_bundled_plugin_is_listed_with_its_manifest(db: SessionDB, tmp_path: Path) -> None:
    tab = {"path": "/board", "position": "before:chat", "override": "/overview", "hidden": True}
    plugin(
        tmp_path / "b", "board", GOOD, label="Board", icon="Table", version="2.0",
        description="Cards", tab=tab, slots=["sessions:top"], entry="dist/x.js", css="x.css",
    )  # fmt: skip
    with serving(db, tmp_path / "b") as served:
        assert listed(served) == {
            "board": {
                "name": "board",
                "label": "Board",
                "description": "Cards",
                "icon": "Table",
                "version": "2.0",
                "tab": tab,
                "slots": ["sessions:top"],
                "entry": "dist/x.js",
                "css": "x.css",
                "has_api": True,
                "source": "bundled",
                "error": None,
            }
        }


def test_a_plugin_api_is_mounted_under_its_name(db: SessionDB, tmp_path: Path) -> None:
    plugin(tmp_path / "b", "my-board", GOOD)
    with serving(db, tmp_path / "b") as served:
        response = served.client.get("/api/plugins/my-board/hello", params={"name": "me"})
        assert response.json() == {"hello": "me"}
        assert served.client.get("/api/plugins/my-board/gone").status_code == 410
        assert served.client.get("/api/plugins/my-board/nothing").status_code == 404
        assert served.client.get("/api/plugins/other/hello").status_code == 404
    assert "hermes_dashboard_plugin_my_board" in sys.modules


def test_a_user_plugin_is_active_only_while_enabled(
    db: SessionDB, hermes_home: Path, tmp_path: Path
) -> None:
    plugin(hermes_home / "plugins", "mine", GOOD)
    with serving(db, tmp_path / "b") as served:
        file, api = "/dashboard-plugins/mine/dist/index.js", "/api/plugins/mine/hello"
        assert listed(served) == {}
        assert served.client.get(file).status_code == 404
        assert served.client.get(api).status_code == 404
        assert "hermes_dashboard_plugin_mine" not in sys.modules
        ConfigFile.of_home().set("plugins.enabled", "mine")
        assert listed(served)["mine"]["source"] == "user"
        assert served.client.get(file).text == "register()"
        assert served.client.get(api).status_code == 200
        ConfigFile.of_home().set("plugins.disabled", "mine")
        assert listed(served) == {}
        assert served.client.get(file).status_code == 404
        assert served.client.get(api).status_code == 404


def test_a_bundled_plugin_wins_over_a_user_plugin_of_the_same_name(
    db: SessionDB, hermes_home: Path, tmp_path: Path
) -> None:
    plugin(tmp_path / "b", "board", label="Bundled")
    plugin(hermes_home / "plugins", "board", "raise RuntimeError", label="Mine")
    with serving(db, tmp_path / "b", "board") as served:
        assert listed(served)["board"]["label"] == "Bundled"
        assert served.client.get("/api/plugins/board/hello").status_code == 404


def test_plugins_can_be_hidden(db: SessionDB, tmp_path: Path) -> None:
    plugin(tmp_path / "b", "board")
    ConfigFile.of_home().set("dashboard.hidden_plugins", "board")
    with serving(db, tmp_path / "b") as served:
        assert listed(served) == {}


@pytest.mark.parametrize(
    "manifest",
    [
        "",
        "{",
        "[]",
        '"x"',
        "nul\0",
        '{"name": "../x"}',
        '{"name": 3}',
        '{"tab": []}',
        '{"tab": {"path": "javascript:alert(1)"}}',
        '{"tab": {"path": "//evil"}}',
        '{"label": []}',
        '{"tab": {"position": "somewhere"}}',
        '{"slots": [1]}',
        '{"slots": "x"}',
        "[" * 50_000,
        '{"description": "' + "x" * 200_000 + '"}',
    ],
)
def test_an_invalid_manifest_is_reported_and_does_not_affect_others(
    db: SessionDB, tmp_path: Path, manifest: str
) -> None:
    (plugin(tmp_path / "b", "bad") / "manifest.json").write_text(manifest)
    plugin(tmp_path / "b", "good", GOOD)
    with serving(db, tmp_path / "b") as served:
        result = listed(served)
        assert "manifest.json" in result["bad"]["error"]
        assert result["good"]["error"] is None
        assert served.client.get("/api/plugins/good/hello").status_code == 200
        assert served.client.get("/api/plugins/bad/hello").status_code == 404


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("import no_such_module_anywhere", "no_such_module_anywhere"),
        ("raise RuntimeError('not today')", "not today"),
        ("import sys; sys.exit(3)", "called sys.exit"),
        ("this is no python", "SyntaxError"),
        ("x = 1", "router"),
        ("router = 'x'", "router"),
    ],
)
def test_a_failed_import_is_reported_and_does_not_affect_others(
    db: SessionDB, tmp_path: Path, code: str, reason: str
) -> None:
    plugin(tmp_path / "b", "bad", code)
    plugin(tmp_path / "b", "good", GOOD)
    with serving(db, tmp_path / "b") as served:
        response = served.client.get("/api/plugins/bad/hello")
        assert response.status_code == 502
        assert reason in response.json()["detail"]
        result = listed(served)
        assert reason in result["bad"]["error"]
        assert result["good"]["error"] is None
        assert served.client.get("/api/plugins/good/hello").status_code == 200


@pytest.mark.parametrize(
    "api", ["../outside.py", "/etc/passwd", "missing.py", "dist/index.js", ".."]
)
def test_code_outside_the_folder_is_not_loaded(db: SessionDB, tmp_path: Path, api: str) -> None:
    folder = plugin(tmp_path / "b", "bad", api=api)
    (folder.parent / "outside.py").write_text(GOOD)
    with serving(db, tmp_path / "b") as served:
        assert served.client.get("/api/plugins/bad/hello").status_code == 502
        assert "inside" in listed(served)["bad"]["error"]


def test_a_symlink_to_code_outside_is_not_followed(db: SessionDB, tmp_path: Path) -> None:
    folder = plugin(tmp_path / "b", "bad", api="linked.py")
    (tmp_path / "outside.py").write_text(GOOD)
    (folder / "linked.py").symlink_to(tmp_path / "outside.py")
    with serving(db, tmp_path / "b") as served:
        assert served.client.get("/api/plugins/bad/hello").status_code == 502


def test_an_exception_in_a_handler_is_reported_and_isolated(db: SessionDB, tmp_path: Path) -> None:
    plugin(tmp_path / "b", "board", GOOD)
    with serving(db, tmp_path / "b") as served:
        for path, reason in (("breaks", "it is broken"), ("breaks-later", "asynchronously")):
            response = served.client.get(f"/api/plugins/board/{path}")
            assert response.status_code == 500
            assert reason in response.json()["detail"]
            assert "board" in response.json()["detail"]
        assert served.client.get("/api/plugins/board/hello").status_code == 200


HANGS = (
    """
import pathlib, time
here = pathlib.Path(__file__).parent
(here / "begun").touch()
while not (here / "go-on").exists():
    time.sleep(0.01)
"""
    + GOOD
)


def test_a_hanging_import_blocks_no_other_requests_and_may_finish_late(
    db: SessionDB, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(apis, "LOAD_SECONDS", 0.5)
    folder = plugin(tmp_path / "b", "hangs", HANGS)
    plugin(tmp_path / "b", "good", GOOD)
    with serving(db, tmp_path / "b") as served:
        assert {item["error"] for item in listed(served).values()} == {None}
        wait_until((folder / "begun").exists)
        wait_until(lambda: served.client.get("/api/plugins/good/hello").status_code == 200)
        with ThreadPoolExecutor(60) as pool:  # more than the server has threads
            requests = [
                pool.submit(served.client.get, "/api/plugins/hangs/hello") for _ in range(60)
            ]
            assert served.client.get("/api/plugins/good/hello").status_code == 200
            assert listed(served)["good"]["error"] is None
            responses = [request.result() for request in requests]
        assert {response.status_code for response in responses} == {502}
        assert "took longer than 0.5 seconds" in responses[0].json()["detail"]
        assert "took longer than 0.5 seconds" in listed(served)["hangs"]["error"]
        (folder / "go-on").touch()
        wait_until(lambda: listed(served)["hangs"]["error"] is None)
        assert served.client.get("/api/plugins/hangs/hello").status_code == 200


# WebSockets


def socket_of(served: RunningDashboard, path: str) -> str:
    return served.socket_url.replace("/api/ws", f"/api/plugins/{path}")


def test_plugin_websockets_work_and_their_errors_are_isolated(
    db: SessionDB, tmp_path: Path
) -> None:
    plugin(tmp_path / "b", "board", SOCKETS)
    with serving(db, tmp_path / "b") as served:
        headers = served.headers
        with connect(socket_of(served, "board/echo"), additional_headers=headers) as socket:
            socket.send("hello")
            assert socket.recv(timeout=PATIENCE_SECONDS) == "hello"
        with (
            connect(socket_of(served, "board/breaks"), additional_headers=headers) as socket,
            pytest.raises(ConnectionClosed) as closed,
        ):
            socket.recv(timeout=PATIENCE_SECONDS)
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1011
        assert "it is broken" in closed.value.rcvd.reason
        for path, item in (("board/echo", None), ("other/echo", headers), ("board/no", headers)):
            with (
                pytest.raises(InvalidStatus),
                connect(socket_of(served, path), additional_headers=item),
            ):
                pass
        with connect(socket_of(served, "board/echo"), additional_headers=headers) as socket:
            socket.send("still here")
            assert socket.recv(timeout=PATIENCE_SECONDS) == "still here"


def test_sign_out_closes_plugin_websockets(
    db: SessionDB, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gate, "RECHECK_SECONDS", 0.05)
    plugin(tmp_path / "b", "board", SOCKETS)
    with serving(db, tmp_path / "b") as served:
        token = served.access.cookies.create("")
        headers = {"Cookie": f"{served.access.origins.cookie}={token}"}
        url = socket_of(served, "board/echo")
        with connect(url, additional_headers=headers, origin=served.url) as socket:
            served.access.cookies.forget(token)
            with pytest.raises(ConnectionClosed) as closed:
                socket.recv(timeout=PATIENCE_SECONDS)
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 4401


SOCKETS = """
from fastapi import APIRouter, WebSocket
router = APIRouter()

@router.websocket("/echo")
async def echo(socket: WebSocket) -> None:
    await socket.accept()
    await socket.send_text(await socket.receive_text())

@router.websocket("/breaks")
async def breaks(socket: WebSocket) -> None:
    await socket.accept()
    raise RuntimeError("it is broken")
"""


# Paths


PAGES = re.findall(r'{ path: "(/[a-z]*)', (ROOT / "web/src/app/router.tsx").read_text("utf-8"))


@pytest.mark.parametrize("path", sorted({*PAGES, "/sessions/mine", "/plugins/x"}))
def test_built_in_paths_are_reserved(db: SessionDB, tmp_path: Path, path: str) -> None:
    plugin(tmp_path / "b", "board", tab={"path": path})
    plugin(tmp_path / "b", "chatter", tab={"path": "/chatter"})
    with serving(db, tmp_path / "b") as served:
        result = listed(served)
        assert path in result["board"]["error"]
        assert "own page" in result["board"]["error"]
        assert result["chatter"]["error"] is None


def test_the_plugin_and_settings_pages_cannot_be_replaced(db: SessionDB, tmp_path: Path) -> None:
    for name in ("plugins", "settings", "sessions"):
        plugin(tmp_path / "b", f"my-{name}", tab={"path": f"/my-{name}", "override": f"/{name}"})
    with serving(db, tmp_path / "b") as served:
        result = listed(served)
        assert "cannot be replaced" in result["my-plugins"]["error"]
        assert "cannot be replaced" in result["my-settings"]["error"]
        assert result["my-sessions"]["error"] is None


def test_the_second_tab_with_the_same_path_has_an_error(db: SessionDB, tmp_path: Path) -> None:
    plugin(tmp_path / "b", "a", tab={"path": "/board"})
    plugin(tmp_path / "b", "b", tab={"path": "/board"})
    plugin(tmp_path / "b", "c", tab={"path": "/board", "hidden": True})
    with serving(db, tmp_path / "b") as served:
        result = listed(served)
        assert result["a"]["error"] is result["c"]["error"] is None
        assert "used by the plugin a" in result["b"]["error"]


# Files


def test_files_of_known_types_are_served_without_caching(db: SessionDB, tmp_path: Path) -> None:
    folder = plugin(tmp_path / "b", "board", GOOD)
    (folder / "notes.txt").write_text("no")
    (folder / "x.PNG").write_bytes(b"png")
    with serving(db, tmp_path / "b") as served:
        response = served.client.get("/dashboard-plugins/board/dist/index.js")
        assert response.headers["content-type"].startswith("text/javascript")
        assert response.headers["cache-control"] == "no-store"
        assert served.client.get("/dashboard-plugins/board/x.PNG").status_code == 200
        for path in ("plugin_api.py", "notes.txt", "dist", "", "missing.js"):
            assert served.client.get(f"/dashboard-plugins/board/{path}").status_code == 404
        assert served.anonymous.get("/dashboard-plugins/board/dist/index.js").status_code == 401


OUTSIDE = [
    "../secret.json",
    "%2e%2e/secret.json",
    "..%2fsecret.json",
    "%2e%2e%2fsecret.json",
    "%252e%252e%252fsecret.json",
    "dist/../../secret.json",
    "dist%2f..%2f..%2fsecret.json",
    "..\\secret.json",
    "..%5csecret.json",
    "%00secret.json",
    "secret.json%00.js",
    "//etc/hosts.json",
    "%2fetc%2fhosts.json",
    "/etc/hosts.json",
    "link.json",
    "linked/secret.json",
    ".hidden.json",
    "circle.js",
    "%ff%fe.js",
    "x" * 3000 + ".js",
]


def test_nothing_outside_a_plugins_folder_is_served(db: SessionDB, tmp_path: Path) -> None:
    fill_with_traps(plugin(tmp_path / "b", "board"), tmp_path)
    with serving(db, tmp_path / "b") as served:
        for path in OUTSIDE:
            status, body = raw_request(
                served.url, f"/dashboard-plugins/board/{path}", **served.headers
            )
            assert status in {400, 404}, path
            assert b"SECRET" not in body, path


def test_nothing_outside_the_page_is_served(db: SessionDB, tmp_path: Path) -> None:
    page = tmp_path / "page" / "dist"
    (page / "assets").mkdir(parents=True)
    (page / "index.html").write_text("the page")
    fill_with_traps(page, tmp_path)
    fill_with_traps(page / "assets", tmp_path)
    with dashboard(dashboard_context(db), page=page) as served:
        for path in [start + item for start in ("/", "/assets/") for item in OUTSIDE]:
            status, body = raw_request(served.url, path)
            assert b"SECRET" not in body, path
            assert (status, body) == (200, b"the page") or status in {400, 404}, path


def test_nothing_outside_the_media_folder_is_served(
    db: SessionDB, hermes_home: Path, tmp_path: Path
) -> None:
    (hermes_home / "media" / "li").mkdir(parents=True)
    fill_with_traps(hermes_home / "media" / "li", tmp_path)
    with dashboard(dashboard_context(db)) as served:
        for path in OUTSIDE:
            status, body = raw_request(served.url, f"/api/media/{path}", **served.headers)
            assert b"SECRET" not in body, path
            assert status in {400, 404, 422}, path


def fill_with_traps(folder: Path, outside: Path) -> None:
    """Add symlinks and hidden files that lead to a secret."""
    secret = outside / "secret.json"
    secret.write_text("SECRET")
    for parent in (folder.parent, folder.parent.parent):
        if not (parent / "secret.json").exists():
            (parent / "secret.json").write_text("SECRET")
    (folder / "link.json").symlink_to(secret)
    (folder / "linked").symlink_to(outside, target_is_directory=True)
    (folder / ".hidden.json").write_text("SECRET")
    (folder / "circle.js").symlink_to(folder / "circle.js")
