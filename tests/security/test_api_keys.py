"""Clients of the API with a key of their own: the rights of its role, sessions of their own."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from hermes_state import SessionDB
from support.api_setup import API_KEY, COMPLETIONS, RESPONSES, ApiSetup
from support.hostile_people import CANARY, OwnersThings, offered_tools, script

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import httpx2

    from support.command_line import Hermes


class KeyClient:
    """A client with a key."""

    def __init__(self, http: httpx2.AsyncClient, key: str) -> None:
        self._http = http
        self._headers = {"Authorization": f"Bearer {key}"}

    async def ask(self, text: str, **headers: str) -> httpx2.Response:
        body = {"messages": [{"role": "user", "content": text}]}
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        return await self._http.post(COMPLETIONS, json=body, headers={**self._headers, **names})

    async def respond(self, text: str, **fields: Any) -> httpx2.Response:
        body = {"input": text, **fields}
        return await self._http.post(RESPONSES, json=body, headers=self._headers)

    async def fetch(self, response_id: str) -> httpx2.Response:
        return await self._http.get(f"{RESPONSES}/{response_id}", headers=self._headers)


def text_of(answer: httpx2.Response) -> str:
    return str(answer.json()["choices"][0]["message"]["content"])


async def test_a_guest_key_has_no_tools_and_a_removed_key_no_access(
    db: SessionDB, hermes_home: Path, tmp_path: Path, model: Callable[[str], Any]
) -> None:
    owners = OwnersThings(db, hermes_home)
    server = model(script(owners.attacks(), "Done.", "Hello."))
    key = str(db.people.add_api_key("ci", "guest"))
    async with ApiSetup(db, tmp_path).open() as client:
        guest = KeyClient(client.http, key)
        assert text_of(await guest.ask("read the diary")) == "Done."
        assert "not available to guests" in text_of(await guest.ask("/search kumquat"))
        db.people.remove_api_key("ci")
        assert (await guest.ask("hi")).status_code == 401
        assert text_of(await KeyClient(client.http, API_KEY).ask("hi")) == "Hello."
    assert offered_tools(server.requests[0]) == set()
    assert CANARY not in json.dumps(server.requests[:2])
    assert "terminal" in offered_tools(server.requests[2])
    owners.assert_untouched()


async def test_a_key_cannot_reach_the_sessions_of_others(
    db: SessionDB, tmp_path: Path, model: Callable[[str], Any]
) -> None:
    server = model(script("The code is kumquat.", "Which code?", "Later.", "Mine."))
    member = str(db.people.add_api_key("ci", "member"))
    async with ApiSetup(db, tmp_path).open() as client:
        owner, other = KeyClient(client.http, API_KEY), KeyClient(client.http, member)
        first = (await owner.respond("the code?", user="notes")).json()
        answer = await other.ask("what was the code?", X_Hermes_Session="notes")
        assert text_of(answer) == "Which code?"
        assert answer.headers["x-hermes-session"] == "notes"
        assert (await other.fetch(first["id"])).status_code == 404
        continued = await other.respond("go on", previous_response_id=first["id"])
        assert continued.status_code == 404
        again = await other.ask("and now?", X_Hermes_Session="notes")
        assert text_of(again) == "Later."
        repeated = await other.ask("what?", Idempotency_Key="k1")
        assert text_of(repeated) == "Mine."
    assert "kumquat" not in json.dumps(server.requests[1:])
    assert "Which code?" in json.dumps(server.requests[2])  # the session of the key continues


def test_keys_are_managed_on_the_command_line(hermes: Hermes) -> None:
    added = hermes("api-keys", "add", "ci", "--role", "guest", "--json")
    key = json.loads(added.out)["key"]
    listed = hermes("api-keys", "list")
    assert "ci" in listed.out
    assert "guest" in listed.out
    assert key not in listed.out
    assert hermes("api-keys", "add", "ci").code == 2
    assert hermes("api-keys", "add", "a/b").code == 2
    with SessionDB() as db:
        found = db.people.find_api_key(key)
        assert found is not None
        assert (found.name, found.role) == ("ci", "guest")
    assert hermes("api-keys", "remove", "ci").code == 0
    assert hermes("api-keys", "remove", "ci").code == 2
