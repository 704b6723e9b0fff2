"""Memory and skills on the dashboard: shown, changed with a check for conflicts, and read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hermes_agent.memory.facts import AgentMemory
from hermes_core.paths import person_memory_path
from hermes_core.roles import Person
from support.pairings import pair

if TYPE_CHECKING:
    from pathlib import Path

    import httpx2 as httpx

    from hermes_state import SessionDB
    from support.dashboards import RunningDashboard


def save(
    client: httpx.Client, seen: list[str], entries: list[str], target: str = "memory"
) -> httpx.Response:
    return client.put(f"/api/memory/{target}", json={"seen": seen, "entries": entries})


def entries_of(client: httpx.Client, target: str = "memory") -> Any:
    items = client.get("/api/memory").json()["items"]
    return next(item["entries"] for item in items if item["target"] == target)


def test_entries_are_shown_changed_and_put_back(db: SessionDB, client: httpx.Client) -> None:
    memory = AgentMemory(db)
    memory.add("memory", "The build uses make.")
    memory.add("memory", "Deploy on Fridays.")
    shown = client.get("/api/memory").json()["items"]
    assert [item["target"] for item in shown] == ["memory", "user"]
    before = ["The build uses make.", "Deploy on Fridays."]
    assert (shown[0]["entries"], shown[0]["max_characters"]) == (before, 2200)
    assert shown[0]["characters"] == len("\n§\n".join(before))
    after = ["The build uses make.", "Never deploy on Fridays."]
    assert save(client, before, after).json()["entries"] == after
    assert memory.entries("memory") == after
    assert save(client, after, before).json()["entries"] == before
    assert memory.entries("memory") == before


def test_a_change_of_the_agent_meanwhile_is_not_overwritten(
    db: SessionDB, client: httpx.Client
) -> None:
    memory = AgentMemory(db)
    memory.add("user", "Likes tea.")
    memory.add("user", "Lives in Oslo.")
    refused = save(client, ["Likes tea."], [], "user")
    assert refused.status_code == 409
    assert "changed meanwhile" in refused.json()["detail"]
    assert memory.entries("user") == ["Likes tea.", "Lives in Oslo."]


def test_text_that_is_too_long_is_refused_and_blank_entries_are_dropped(
    client: httpx.Client,
) -> None:
    refused = save(client, [], ["x" * 3000])
    assert refused.status_code == 400
    assert "2,200" in refused.json()["detail"]
    assert save(client, [], ["  one ", "", "two\n§\nthree", "one"]).json()["entries"] == [
        "one",
        "two",
        "three",
    ]
    assert save(client, [], ["x"], "elsewhere").status_code == 422


def test_skills_are_listed_with_their_problems_and_read(
    served: RunningDashboard, hermes_home: Path
) -> None:
    for name, text in {
        "tidy": "---\ndescription: Tidies a folder.\n---\n# Tidy\nFirst look.",
        "bare": "no description",
    }.items():
        folder = hermes_home / "skills" / name
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_text(text)
    (hermes_home / "skills" / "tidy" / "notes.txt").write_text("n")
    client = served.client
    bare, tidy = client.get("/api/skills").json()["items"]
    assert (tidy["name"], tidy["description"], tidy["problem"]) == ("tidy", "Tidies a folder.", "")
    assert "description" in bare["problem"]
    shown = client.get("/api/skills/tidy").json()
    assert shown == {"name": "tidy", "text": "# Tidy\nFirst look.", "files": ["notes.txt"]}
    assert client.get("/api/skills/nothing").status_code == 404
    (hermes_home / "skills" / "tidy" / "SKILL.md").unlink()
    (hermes_home / "skills" / "tidy" / "SKILL.md").symlink_to("/etc/passwd")
    assert "root:" not in client.get("/api/skills/tidy").text
    assert served.anonymous.get("/api/memory").status_code == 401


def test_notes_of_other_people_are_listed_and_changed(
    db: SessionDB, client: httpx.Client, hermes_home: Path
) -> None:
    assert client.get("/api/memory/people").json() == {"items": []}
    pair(db, "telegram", "42", "Ada")
    folder = Person("telegram", "42").folder_name
    AgentMemory(db, person_memory_path(folder)).add("user", "Likes tea")
    AgentMemory(db, person_memory_path("left-1")).add("memory", "Old note")
    ada, left = sorted(
        client.get("/api/memory/people").json()["items"], key=lambda each: str(each["name"])
    )[::-1]
    assert (ada["name"], ada["platform"], left["name"]) == ("Ada", "telegram", "")
    assert ada["items"][1]["entries"] == ["Likes tea"]
    path = f"/api/memory/people/{folder}/user"
    changed = client.put(path, json={"seen": ["Likes tea"], "entries": ["Likes coffee"]})
    assert (changed.status_code, changed.json()["entries"]) == (200, ["Likes coffee"])
    stale = client.put(path, json={"seen": ["Likes tea"], "entries": []})
    assert stale.status_code == 409
    # Only folders of people can be named: neither the owner's notes nor a path elsewhere.
    for name in ("nobody", "people"):
        body = {"seen": [], "entries": ["x"]}
        assert client.put(f"/api/memory/people/{name}/user", json=body).status_code == 404
