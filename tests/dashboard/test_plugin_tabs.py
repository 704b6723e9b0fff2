"""Tabs of plugins: found, served, and kept apart whatever they do."""

from __future__ import annotations

import json
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from hermes_core.config_file import ConfigFile
from support.dashboards import dashboard, parts_of, raw

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from hermes_state import SessionDB
    from support.dashboards import Served

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


@pytest.fixture(autouse=True)
def clean_modules() -> Iterator[None]:
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if name.startswith("hermes_dashboard_plugin_"):
            del sys.modules[name]


def plugin(root: Path, name: str, code: str | None = None, **manifest: Any) -> Path:
    """A plugin's dashboard folder below *root*."""
    folder = root / name / "dashboard"
    (folder / "dist").mkdir(parents=True)
    (folder / "dist" / "index.js").write_text("register()")
    facts: dict[str, Any] = {"name": name, **manifest}
    if code is not None:
        (folder / "plugin_api.py").write_text(code)
        facts["api"] = "plugin_api.py"
    (folder / "manifest.json").write_text(json.dumps(facts))
    return folder


@contextmanager
def serving(db: SessionDB, bundled: Path, *enabled: str) -> Iterator[Served]:
    if enabled:
        ConfigFile.of_home().set("plugins.enabled", ",".join(enabled))
    bundled.mkdir(exist_ok=True)
    with dashboard(parts_of(db), bundled=bundled) as found:
        yield found


def listed(served: Served) -> dict[str, dict[str, Any]]:
    return {one["name"]: one for one in served.client.get("/api/dashboard/plugins").json()}


def test_the_achievements_come_with_it(served: Served) -> None:
    found = listed(served)["hermes-achievements"]
    assert found["tab"]["path"] == "/achievements"
    assert found["source"] == "bundled"
    assert found["has_api"]
    assert found["error"] is None
    answer = served.client.get("/api/plugins/hermes-achievements/scan-status")
    assert answer.json()["state"] == "idle"
    schema = served.client.get("/api/plugins/hermes-achievements/openapi.json").json()
    assert "/achievements" in schema["paths"]


def test_a_bundled_plugin_is_listed_with_what_its_manifest_says(
    db: SessionDB, tmp_path: Path
) -> None:
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


def test_a_plugins_python_is_mounted_under_its_name(db: SessionDB, tmp_path: Path) -> None:
    plugin(tmp_path / "b", "my-board", GOOD)
    with serving(db, tmp_path / "b") as served:
        answer = served.client.get("/api/plugins/my-board/hello", params={"name": "me"})
        assert answer.json() == {"hello": "me"}
        assert served.client.get("/api/plugins/my-board/gone").status_code == 410
        assert served.client.get("/api/plugins/my-board/nothing").status_code == 404
        assert served.client.get("/api/plugins/other/hello").status_code == 404
    assert "hermes_dashboard_plugin_my_board" in sys.modules


def test_a_user_plugin_counts_only_while_it_is_enabled(
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


def test_of_two_with_one_name_the_bundled_one_wins(
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
def test_a_manifest_that_cannot_be_used_is_told_and_stops_nobody(
    db: SessionDB, tmp_path: Path, manifest: str
) -> None:
    (plugin(tmp_path / "b", "bad") / "manifest.json").write_text(manifest)
    plugin(tmp_path / "b", "good", GOOD)
    with serving(db, tmp_path / "b") as served:
        found = listed(served)
        assert "manifest.json" in found["bad"]["error"]
        assert found["good"]["error"] is None
        assert served.client.get("/api/plugins/good/hello").status_code == 200
        assert served.client.get("/api/plugins/bad/hello").status_code == 404


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("import no_such_module_anywhere", "no_such_module_anywhere"),
        ("raise RuntimeError('not today')", "not today"),
        ("import sys; sys.exit(3)", "tried to exit"),
        ("this is no python", "SyntaxError"),
        ("x = 1", "router"),
        ("router = 'x'", "router"),
    ],
)
def test_python_that_cannot_be_loaded_is_told_and_stops_nobody(
    db: SessionDB, tmp_path: Path, code: str, reason: str
) -> None:
    plugin(tmp_path / "b", "bad", code)
    plugin(tmp_path / "b", "good", GOOD)
    with serving(db, tmp_path / "b") as served:
        answer = served.client.get("/api/plugins/bad/hello")
        assert answer.status_code == 502
        assert reason in answer.json()["detail"]
        found = listed(served)
        assert reason in found["bad"]["error"]
        assert found["good"]["error"] is None
        assert served.client.get("/api/plugins/good/hello").status_code == 200


@pytest.mark.parametrize(
    "api", ["../outside.py", "/etc/passwd", "missing.py", "dist/index.js", ".."]
)
def test_python_outside_the_folder_is_not_loaded(db: SessionDB, tmp_path: Path, api: str) -> None:
    folder = plugin(tmp_path / "b", "bad", api=api)
    (folder.parent / "outside.py").write_text(GOOD)
    with serving(db, tmp_path / "b") as served:
        assert served.client.get("/api/plugins/bad/hello").status_code == 502
        assert "inside" in listed(served)["bad"]["error"]


def test_a_link_to_python_outside_is_not_followed(db: SessionDB, tmp_path: Path) -> None:
    folder = plugin(tmp_path / "b", "bad", api="linked.py")
    (tmp_path / "outside.py").write_text(GOOD)
    (folder / "linked.py").symlink_to(tmp_path / "outside.py")
    with serving(db, tmp_path / "b") as served:
        assert served.client.get("/api/plugins/bad/hello").status_code == 502


def test_a_handler_that_throws_is_told_and_stops_nobody(db: SessionDB, tmp_path: Path) -> None:
    plugin(tmp_path / "b", "board", GOOD)
    with serving(db, tmp_path / "b") as served:
        for path, reason in (("breaks", "it is broken"), ("breaks-later", "asynchronously")):
            answer = served.client.get(f"/api/plugins/board/{path}")
            assert answer.status_code == 500
            assert reason in answer.json()["detail"]
            assert "board" in answer.json()["detail"]
        assert served.client.get("/api/plugins/board/hello").status_code == 200


# Files


def test_files_of_known_kinds_are_served_and_not_kept(db: SessionDB, tmp_path: Path) -> None:
    folder = plugin(tmp_path / "b", "board", GOOD)
    (folder / "notes.txt").write_text("no")
    (folder / "x.PNG").write_bytes(b"png")
    with serving(db, tmp_path / "b") as served:
        answer = served.client.get("/dashboard-plugins/board/dist/index.js")
        assert answer.headers["content-type"].startswith("text/javascript")
        assert answer.headers["cache-control"] == "no-store"
        assert served.client.get("/dashboard-plugins/board/x.PNG").status_code == 200
        for path in ("plugin_api.py", "notes.txt", "dist", "", "missing.js"):
            assert served.client.get(f"/dashboard-plugins/board/{path}").status_code == 404
        assert served.stranger.get("/dashboard-plugins/board/dist/index.js").status_code == 401


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
            status, body = raw(served.url, f"/dashboard-plugins/board/{path}", **served.headers)
            assert status in {400, 404}, path
            assert b"SECRET" not in body, path


def test_nothing_outside_the_page_is_served(db: SessionDB, tmp_path: Path) -> None:
    page = tmp_path / "page" / "dist"
    (page / "assets").mkdir(parents=True)
    (page / "index.html").write_text("the page")
    fill_with_traps(page, tmp_path)
    fill_with_traps(page / "assets", tmp_path)
    with dashboard(parts_of(db), page=page) as served:
        for path in [start + one for start in ("/", "/assets/") for one in OUTSIDE]:
            status, body = raw(served.url, path)
            assert b"SECRET" not in body, path
            assert (status, body) == (200, b"the page") or status in {400, 404}, path


def test_nothing_outside_the_kept_files_is_served(
    db: SessionDB, hermes_home: Path, tmp_path: Path
) -> None:
    (hermes_home / "media" / "li").mkdir(parents=True)
    fill_with_traps(hermes_home / "media" / "li", tmp_path)
    with dashboard(parts_of(db)) as served:
        for path in OUTSIDE:
            status, body = raw(served.url, f"/api/media/{path}", **served.headers)
            assert b"SECRET" not in body, path
            assert status in {400, 404, 422}, path


def fill_with_traps(folder: Path, outside: Path) -> None:
    """Ways out of a folder, and something to find there."""
    secret = outside / "secret.json"
    secret.write_text("SECRET")
    for place in (folder.parent, folder.parent.parent):
        if not (place / "secret.json").exists():
            (place / "secret.json").write_text("SECRET")
    (folder / "link.json").symlink_to(secret)
    (folder / "linked").symlink_to(outside, target_is_directory=True)
    (folder / ".hidden.json").write_text("SECRET")
    (folder / "circle.js").symlink_to(folder / "circle.js")
