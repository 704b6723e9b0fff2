"""What the achievements page asks for: the catalogue's colours and drawings, and looks back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from achievements.test_plugin_api import PREFIX, load_plugin, serving, settled

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx2 as httpx

    from achievements.life import Life

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture
def client(life: Life) -> Iterator[httpx.Client]:
    life.say("hello")
    for _ in range(12):
        life.shell("pytest && git commit -m x")
    with serving(load_plugin()) as client:
        yield client


def test_the_catalogue_has_a_drawing_for_every_icon_and_a_colour_for_every_tier(
    client: httpx.Client,
) -> None:
    catalogue = client.get(f"{PREFIX}/catalogue").json()
    shown = settled(client)["achievements"]
    tiers = {one["id"]: one for one in catalogue["tiers"]}
    categories = {one["id"] for one in catalogue["categories"]}
    assert {one["icon"] for one in shown} | {"lock", "award"} <= catalogue["icons"].keys()
    assert {one["tier"] for one in shown if one["tier"]} <= tiers.keys()
    assert {one["category"] for one in shown} == categories
    assert all(one["colour"].startswith("#") and one["glow"] for one in tiers.values())


def test_the_catalogue_names_no_secret(client: httpx.Client) -> None:
    assert client.get(f"{PREFIX}/catalogue").json().keys() == {"tiers", "categories", "icons"}


def test_a_month_is_looked_back_on(client: httpx.Client) -> None:
    settled(client)
    body = client.get(f"{PREFIX}/recap", params={"period": "2026-01"}).json()
    assert body["period"]["name"] == "January 2026"
    assert body["totals"]["commits"] == 12
    assert len(body["days"]) == 31
    assert not body["is_empty"]
    assert body["years"] == [{"id": "2026", "name": "2026"}]
    assert body["months"] == [{"id": "2026-01", "name": "January 2026"}]
    assert {"name": "commits", "said": "12"} in body["figures"]
    assert body["best_day"]["day"] == "2026-01-05"


def test_badges_of_a_look_back_lead_to_their_messages(client: httpx.Client) -> None:
    settled(client)
    body = client.get(f"{PREFIX}/recap", params={"period": "2026"}).json()
    assert body["tier_ups"]
    for step in body["tier_ups"]:
        assert step["session_id"] == "s1"
        assert step["message_id"]
        assert step["is_gone"] is False


def test_without_a_period_it_is_the_latest_year(client: httpx.Client) -> None:
    settled(client)
    assert client.get(f"{PREFIX}/recap").json()["period"]["id"] == "2026"


def test_a_period_in_which_nothing_happened_is_empty(client: httpx.Client) -> None:
    settled(client)
    body = client.get(f"{PREFIX}/recap", params={"period": "2019"}).json()
    assert body["is_empty"]
    assert body["months"]
    answer = client.get(f"{PREFIX}/recap/picture", params={"period": "2019"})
    assert answer.status_code == 404
    assert "nothing to look back on" in answer.json()["detail"]


def test_a_look_back_can_be_saved_as_a_picture(client: httpx.Client) -> None:
    settled(client)
    answer = client.get(f"{PREFIX}/recap/picture", params={"period": "2026-01"})
    assert answer.content.startswith(PNG)
    assert answer.headers["content-type"] == "image/png"
    assert "hermes-recap-2026-01.png" in answer.headers["content-disposition"]


@pytest.mark.parametrize("path", ["recap", "recap/picture"])
@pytest.mark.parametrize("period", ["soon", "2026-13", '2026"; x=', "2026-W99"])
def test_a_wrong_period_is_refused_with_what_is_accepted(
    client: httpx.Client, path: str, period: str
) -> None:
    answer = client.get(f"{PREFIX}/{path}", params={"period": period})
    assert answer.status_code == 400
    assert "2026" in answer.json()["detail"]


def test_on_an_empty_home_there_is_nothing_to_look_back_on(hermes_home: object) -> None:
    with serving(load_plugin()) as client:
        body = client.get(f"{PREFIX}/recap").json()
        assert body["period"] is None
        assert client.get(f"{PREFIX}/recap/picture").status_code == 404
