"""Facts of the memory, and edits of files, on the dashboard."""

from __future__ import annotations

from typing import TYPE_CHECKING

from support.remembered import SESSION, call, remember

if TYPE_CHECKING:
    import httpx2 as httpx

    from hermes_state import SessionDB
    from support.dashboards import RunningDashboard


def states(client: httpx.Client) -> dict[str, str]:
    return {fact["text"]: fact["state"] for fact in client.get("/api/facts").json()["items"]}


def test_a_fact_leads_to_the_message_that_it_rests_on(db: SessionDB, client: httpx.Client) -> None:
    message = remember(db)
    (fact,) = client.get("/api/facts").json()["items"]
    assert (fact["text"], fact["created_by"], fact["is_in_file"]) == ("Likes tea.", "review", True)
    shown = client.get(f"/api/facts/{fact['id']}").json()
    (source,) = shown["evidence"]
    assert (source["quotation"], source["session_id"]) == ("I like tea", SESSION)
    assert source["message_id"] == message
    assert [change["what"] for change in shown["changes"]] == ["added"]
    assert client.get("/api/facts/99").status_code == 404


def test_facts_are_pinned_rejected_believed_again_and_changes_undone(
    db: SessionDB, served: RunningDashboard
) -> None:
    client = served.client
    remember(db)
    (fact,) = client.get("/api/facts").json()["items"]
    path = f"/api/facts/{fact['id']}"
    assert client.post(path, json={"action": "pin"}).json()["is_pinned"] is True
    assert client.post(path, json={"action": "reject"}).json()["state"] == "rejected"
    assert client.post("/api/facts/undo", json={}).json()["items"][0]["state"] == "active"
    client.post(path, json={"action": "reject"})
    assert client.post(path, json={"action": "confirm"}).json()["state"] == "active"
    assert client.post(path, json={"action": "burn"}).status_code == 422
    assert client.post("/api/facts/99", json={"action": "pin"}).status_code == 404
    for _ in range(4):
        client.post("/api/facts/undo", json={})
    assert client.post("/api/facts/undo", json={}).status_code == 409
    assert states(client) == {"Likes tea.": "rejected"}
    assert served.anonymous.get("/api/facts").status_code == 401


def test_edits_are_listed_of_all_agents_of_a_conversation_and_of_a_file(
    db: SessionDB, client: httpx.Client
) -> None:
    for number, (name, agent) in enumerate((("one", "claude-code"), ("two", "cli"))):
        at = 1_760_000_000.0 + number
        db.create_session(name, agent, cwd="/srv/project", started_at=at)
        db.append_message(name, "user", f"Change the app, {name}", timestamp=at)
        new = {"path": "app.py", "old_string": "a = 1\n", "new_string": f"a = 1\n{name} = 2\n"}
        edit = call("patch", new, f"call-{name}")
        db.append_message(name, "assistant", "", tool_calls=[edit], timestamp=at)
        db.append_message(name, "tool", '{"error": null}', tool_call_id=f"call-{name}")
    every = client.get("/api/edits").json()
    assert [(edit["session_id"], edit["agent"]) for edit in every["items"]] == [
        ("two", "cli"), ("one", "claude-code"),
    ]  # fmt: skip
    assert every["filling"] is None
    (edit,) = client.get("/api/edits", params={"session_id": "one"}).json()["items"]
    assert (edit["path"], edit["added_lines"], edit["removed_lines"]) == (
        "/srv/project/app.py", 1, 0,
    )  # fmt: skip
    assert edit["prompt"] == "Change the app, one"
    of_file = client.get("/api/edits", params={"path": "/srv/project/app.py"}).json()["items"]
    assert len(of_file) == 2
    assert client.get("/api/edits", params={"path": "/elsewhere/app.py"}).json()["items"] == []
    assert client.get("/api/edits", params={"limit": 0}).status_code == 422
