"""What the achievements page asks for: the catalogue's colours and drawings, and looks back."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Any

import pytest

from achievements.test_plugin_api import PREFIX, load_plugin, serving, settled
from hermes_achievements.calendar import Calendar
from hermes_achievements.scan.ledger_entries import collect_facts, make_entry
from hermes_conversation import achievements
from hermes_core.time_zones import find_zone

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx2 as httpx

    from achievements.history_builder import HistoryBuilder
    from hermes_achievements.scan.history import LedgerEntry
    from hermes_achievements.service import HistorySource

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture
def client(builder: HistoryBuilder) -> Iterator[httpx.Client]:
    builder.send("hello")
    for _ in range(12):
        builder.run_shell("pytest && git commit -m x")
    with serving(load_plugin()) as client:
        yield client


def test_the_catalogue_has_a_drawing_for_every_icon_and_a_colour_for_every_tier(
    client: httpx.Client,
) -> None:
    catalogue = client.get(f"{PREFIX}/catalogue").json()
    shown = settled(client)["achievements"]
    tiers = {tier["id"]: tier for tier in catalogue["tiers"]}
    categories = {category["id"] for category in catalogue["categories"]}
    assert {item["icon"] for item in shown} | {"lock", "award"} <= catalogue["icons"].keys()
    assert {item["tier"] for item in shown if item["tier"]} <= tiers.keys()
    assert {item["category"] for item in shown} == categories
    assert all(tier["colour"].startswith("#") and tier["glow"] for tier in tiers.values())


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
    assert "No activity" in answer.json()["detail"]


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


def test_a_first_scan_of_another_process_is_shown_as_it_goes(builder: HistoryBuilder) -> None:
    for number in range(3):
        builder.start(f"other-{number}").send("hello")
    plugin = load_plugin()
    source = achievements.source()
    with serving(plugin) as client, contextlib.closing(source.open_ledger()) as ledger:
        with ledger.try_lock() as is_locked:
            assert is_locked
            ledger.save(_read_by_another(source), {"generation": b"1"}, 1)
            body = _reported(client)
            assert body["scan_meta"]["mode"] == "in_progress"
            assert body["scan_meta"]["sessions_scanned_so_far"] == 2
            assert body["scan_meta"]["sessions_expected_total"] == 4
            assert body["scan_meta"]["status"]["waiting_for"]
            assert body["unlocked_count"] > 0
        assert settled(client)["scan_meta"]["sessions_total"] == 4


def _read_by_another(source: HistorySource) -> list[LedgerEntry]:
    """What a scan has made of two of the sessions."""
    calendar = Calendar(find_zone(source.zone))
    with contextlib.closing(source.open_history()) as history:
        books = [collect_facts(history, name) for name in ("other-0", "other-1")]
    return [make_entry(book, calendar)[0] for book in books if book is not None]


def _reported(client: httpx.Client) -> dict[str, Any]:
    for _ in range(300):
        body: dict[str, Any] = client.get(f"{PREFIX}/achievements").json()
        if body["scan_meta"].get("sessions_scanned_so_far"):
            return body
        time.sleep(0.05)
    raise AssertionError("the other scan was not seen")


def test_a_look_back_has_what_was_written_since_the_last_one(
    client: httpx.Client, builder: HistoryBuilder
) -> None:
    settled(client)
    asked = {"period": "2026-01"}
    before = client.get(f"{PREFIX}/recap", params=asked).json()
    assert client.get(f"{PREFIX}/recap", params=asked).json() == before
    builder.run_shell("git commit -m y")
    assert client.post(f"{PREFIX}/rescan").status_code == 200
    after = client.get(f"{PREFIX}/recap", params=asked).json()
    assert after["totals"]["commits"] == before["totals"]["commits"] + 1
