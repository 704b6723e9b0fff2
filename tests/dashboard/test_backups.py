"""Backups, permissions and MCP servers on the dashboard."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hermes_agent.permissions.grants import GRANTS_FILE, Grants
from support.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    import httpx2 as httpx

    from hermes_state import SessionDB


def ended_task(client: httpx.Client) -> Any:
    wait_until(lambda: not client.get("/api/backups").json()["task"]["is_running"])
    return client.get("/api/backups").json()["task"]


def test_a_backup_is_written_listed_and_verified(
    client: httpx.Client, db: SessionDB, hermes_home: Path
) -> None:
    db.create_session("talk", "cli", is_owned=False)
    db.append_message("talk", "user", "Hello")
    db.set_session_archived("talk")
    empty = client.get("/api/backups").json()
    assert (empty["items"], empty["task"]) == ([], None)
    assert client.post("/api/backups").status_code == 202
    assert ended_task(client)["error"] == ""
    [item] = client.get("/api/backups").json()["items"]
    assert (item["sessions"], item["messages"], item["with_secrets"]) == (1, 1, False)
    path = hermes_home / "backups" / item["name"]
    assert item["restore_command"] == f"HERMES_HOME={hermes_home} hermes restore {path}"
    assert client.get("/api/backups").json()["sessions"] == item["sessions"]
    assert client.post(f"/api/backups/{item['name']}/verify").status_code == 202
    task = ended_task(client)
    assert (task["action"], task["error"]) == ("verify", "")
    assert [each.name for each in path.parent.iterdir()] == [item["name"]]
    assert client.post("/api/backups/nothing.zip/verify").status_code == 404


def test_a_damaged_backup_is_named_by_the_list_or_by_its_verification(
    client: httpx.Client, hermes_home: Path
) -> None:
    assert client.post("/api/backups").status_code == 202
    ended_task(client)
    [path] = (hermes_home / "backups").glob("*.zip")
    content = bytearray(path.read_bytes())
    middle = len(content) // 2
    content[middle : middle + 40] = bytes(40)
    path.write_bytes(content)
    (path.parent / "other.zip").write_bytes(b"no archive")
    items = {item["name"]: item for item in client.get("/api/backups").json()["items"]}
    assert "not a Hermes backup" in items["other.zip"]["problem"]
    assert client.post(f"/api/backups/{path.name}/verify").status_code == 202
    assert ended_task(client)["error"] != ""


def test_a_rule_is_listed_and_revoked(client: httpx.Client, hermes_home: Path) -> None:
    grants = Grants(hermes_home / GRANTS_FILE)
    grants.add(["network", "run: git push origin *"])
    shown = client.get("/api/permissions").json()
    assert (shown["mode"], shown["rules"]) == ("workspace", ["network", "run: git push origin *"])
    rule = {"rule": "run: git push origin *"}
    assert client.delete("/api/permissions/rules", params=rule).status_code == 204
    assert client.delete("/api/permissions/rules", params=rule).status_code == 404
    assert grants.always() == ["network"]
