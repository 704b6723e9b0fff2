"""The catalogue is data: whole, consistent, and refused when it is not."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from xml.parsers import expat

import pytest

from hermes_achievements import catalogue
from hermes_achievements.catalogue import achievement_from
from hermes_achievements.metrics import COUNTS, PEAKS, VARIETY
from hermes_core.errors import CatalogueError, HermesError

IDS = Path(__file__).with_name("catalogue_ids.txt")
TIERS = ["clay", "bronze", "silver", "gold", "aether"]
# What one person did in fourteen months; there has to be something left to do.
HEAVY_TOOL_CALLS = 259_958
HEAVY_MESSAGES = 603_542
HEAVY_SESSIONS = 8_564
# A failed shell call is a failed call, which is rewarded already.
UNREWARDED = {"failed_commands"}


@pytest.fixture(scope="module")
def loaded():
    return catalogue.load()


def mapping(**changes):
    whole = {
        "id": "a-test",
        "name": "A Test",
        "text": "You tried.",
        "counts": "Tool calls.",
        "icon": "hammer",
        "category": "scale",
        "kind": "counter",
        "value": "total_tool_calls",
        "unit": "tool calls",
        "tiers": [1, 2, 3, 4, 5],
    }
    return {field: value for field, value in {**whole, **changes}.items() if value is not None}


def metric_of(value):
    if value.startswith("max_"):
        return re.sub(r"^max_|_in_(session|day)$", "", value)
    return re.sub(r"^(total|peak|distinct)_", "", value)


def contrast(one, other):
    def light(colour):
        parts = [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted([light(one), light(other)])
    return (high + 0.05) / (low + 0.05)


def test_there_are_plenty_of_achievements_in_about_ten_categories(loaded):
    assert len(loaded) >= 115
    assert 8 <= len(loaded.categories) <= 12
    sizes = Counter(item.category for item in loaded)
    assert set(sizes) == {category.id for category in loaded.categories}
    assert min(sizes.values()) >= 5


def test_categories_have_a_place_a_name_and_a_text(loaded):
    assert [category.order for category in loaded.categories] == list(
        range(1, len(loaded.categories) + 1)
    )
    assert all(category.name and category.text.endswith(".") for category in loaded.categories)
    order = [category.id for category in loaded.categories]
    places = [order.index(item.category) for item in loaded]
    assert places == sorted(places)


def test_an_id_may_be_added_but_never_removed_or_renamed(loaded):
    frozen = IDS.read_text(encoding="utf-8").split()
    assert frozen == sorted(set(frozen))
    ids = [item.id for item in loaded]
    assert set(frozen) - set(ids) == set(), "an id that somebody has earned is gone"
    assert set(ids) - set(frozen) == set(), f"add the new ids to {IDS.name}"
    assert len(ids) == len(set(ids))


def test_there_are_five_tiers_in_rising_order(loaded):
    assert [tier.id for tier in loaded.tiers] == TIERS
    assert [tier.name for tier in loaded.tiers] == [name.title() for name in TIERS]


def test_tiers_can_be_read_on_light_and_on_dark_backgrounds(loaded):
    for tier in loaded.tiers:
        assert contrast(tier.colour, "#ffffff") >= 4.5
        assert contrast(tier.glow, "#14161a") >= 4.5


def test_a_ladder_has_five_rising_thresholds_and_a_single_step_has_one(loaded):
    for item in loaded:
        numbers = [number for _, number in item.thresholds]
        assert numbers == sorted(set(numbers))
        assert numbers[0] >= 1
        if item.is_ladder:
            assert [tier for tier, _ in item.thresholds] == TIERS
        else:
            assert len(numbers) == 1


def test_at_most_half_only_count_how_much(loaded):
    raw = [item for item in loaded if item.value.startswith("total_") and item.is_ladder]
    assert len(raw) <= len(loaded) / 2
    assert len([item for item in loaded if item.kind == "counter"]) <= len(loaded) * 0.4


def test_every_kind_is_used_and_fits_its_value(loaded):
    assert {item.kind for item in loaded} == set(catalogue.ACHIEVEMENT_KINDS)
    for item in loaded:
        first = (
            item.value.startswith("total_") and item.thresholds[0][1] == 1 and not item.is_ladder
        )
        assert (item.kind == "first") == first, item.id
        if item.kind == "counter":
            assert item.value.startswith("total_"), item.id
        if item.kind == "session":
            assert item.value.endswith("_in_session"), item.id
        if item.kind == "day":
            assert item.value.endswith("_in_day"), item.id
        if item.kind == "peak":
            assert item.value.startswith("peak_"), item.id


def test_no_two_ladders_climb_the_same_value(loaded):
    values = Counter(item.value for item in loaded if item.is_ladder)
    assert [value for value, times in values.items() if times > 1] == []


def test_texts_are_sentences_of_their_own(loaded):
    for field in ("name", "text", "counts"):
        texts = [getattr(item, field) for item in loaded]
        assert [text for text, times in Counter(texts).items() if times > 1] == []
        assert all(text == text.strip() and text for text in texts)
    assert all(item.counts.endswith(".") and item.text[-1] in ".?" for item in loaded)
    assert all(item.unit for item in loaded)


def test_secrets_have_hints_and_others_have_none(loaded):
    secrets = [item for item in loaded if item.secret]
    assert len(secrets) >= 18
    assert len({secret.hint for secret in secrets}) == len(secrets)
    assert all(secret.hint.endswith(".") for secret in secrets)
    assert [item.id for item in loaded if item.hint and not item.secret] == []


def test_a_hint_names_neither_a_number_nor_what_counts(loaded):
    for item in loaded:
        assert not re.search(r"\d", item.hint), item.id
        words = metric_of(item.value).split("_")
        stems = [word[:5].rstrip("s") for word in words if len(word) > 2]
        hinted = re.findall(r"[a-z]+", item.hint.lower())
        matches = [word for word in hinted for stem in stems if word.startswith(stem)]
        assert matches == [], item.id


def test_every_value_is_known(loaded):
    assert {item.value for item in loaded} <= catalogue.known_values()


def test_values_are_made_from_every_metric():
    expected = 3 * len(COUNTS) + len(PEAKS) + len(VARIETY) + len(catalogue.DERIVED_VALUES)
    assert len(catalogue.known_values()) == expected
    assert {"total_commits", "max_commits_in_session", "max_commits_in_day"} <= (
        catalogue.known_values()
    )
    assert {"peak_clean_run", "distinct_models", "longest_streak"} <= catalogue.known_values()


def test_every_metric_and_derived_value_is_rewarded(loaded):
    used = {item.value for item in loaded}
    assert {metric_of(value) for value in used} >= {*COUNTS, *PEAKS, *VARIETY} - UNREWARDED
    assert set(catalogue.DERIVED_VALUES) <= used


def test_derived_values_are_documented_by_a_sentence():
    assert all(
        text[0].isupper() and text.endswith(".") for text in catalogue.DERIVED_VALUES.values()
    )


def test_every_icon_is_drawn_and_there_are_many(loaded):
    used = {item.icon for item in loaded}
    assert used <= set(catalogue.icons())
    assert len(used) >= 70


@pytest.mark.parametrize("name", sorted(catalogue.icons()))
def test_a_drawing_is_well_formed_and_only_a_drawing(name):
    seen = []
    parser = expat.ParserCreate()
    parser.StartElementHandler = lambda tag, attributes: seen.append((tag, attributes))
    parser.Parse(f"<svg>{catalogue.icons()[name]}</svg>", True)
    assert len(seen) > 1
    shapes = {"path", "circle", "rect", "line", "polyline", "polygon", "ellipse"}
    assert {tag for tag, _ in seen[1:]} <= shapes
    assert not any(key.startswith("on") or "href" in key for _, item in seen for key in item)


def test_the_licence_of_the_icons_is_there():
    text = (catalogue.entries.CATALOGUE_FOLDER / "LUCIDE-LICENSE.txt").read_text(encoding="utf-8")
    assert "ISC License" in text
    assert "Lucide" in text


def test_a_newcomer_earns_something_in_the_first_minutes(loaded):
    firsts = {item.value for item in loaded if item.thresholds[0] == ("clay", 1)}
    assert {
        "total_messages_sent",
        "total_tool_calls",
        "total_shell_commands",
        "total_files_written",
        "total_titled",
    } <= firsts


def test_the_heaviest_user_has_something_left_to_do(loaded):
    tops = {item.value: dict(item.thresholds)["aether"] for item in loaded if item.is_ladder}
    assert tops["total_tool_calls"] >= 1_000_000 > HEAVY_TOOL_CALLS
    assert tops["total_messages_sent"] > HEAVY_MESSAGES / 3
    assert tops["total_conversations"] > 3 * HEAVY_SESSIONS
    assert tops["longest_streak"] >= 365
    assert tops["longest_week_streak"] >= 52
    assert tops["longest_month_streak"] >= 24


@pytest.mark.parametrize("value", ["total_tool_calls", "max_tool_calls_in_session"])
def test_tool_calls_have_a_ladder_whose_first_step_is_low(loaded, value):
    (ladder,) = [item for item in loaded if item.value == value and item.is_ladder]
    assert ladder.thresholds[0][1] <= 10


def test_an_achievement_is_found_by_its_id(loaded):
    assert loaded.by_id("first-words").name == "First Words"
    assert loaded.by_id("nothing") is None
    assert all(item.origin == "hermes" for item in loaded)


def test_a_mapping_becomes_a_ladder_or_a_single_step():
    ladder = achievement_from(mapping(), "garden")
    assert ladder.is_ladder
    assert ladder.thresholds == tuple(zip(TIERS, [1, 2, 3, 4, 5], strict=True))
    assert ladder.origin == "garden"
    single = achievement_from(mapping(tiers=None, goal=7, tier="gold"), "garden")
    assert not single.is_ladder
    assert single.thresholds == (("gold", 7),)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"id": None}, "id is missing; accepted: lower-case words"),
        ({"id": "Not Kebab"}, "id is 'Not Kebab'; accepted: lower-case words"),
        ({"name": None}, "a-test: name is missing; accepted: a text"),
        ({"text": "  "}, "a-test: text is '  '; accepted: a text"),
        ({"counts": 3}, "a-test: counts is 3; accepted: a text"),
        ({"unit": None}, "a-test: unit is missing"),
        ({"kind": "luck"}, "a-test: kind is 'luck'; accepted: one of counter, session"),
        ({"value": "total_luck"}, "a-test: value is 'total_luck'; accepted: total_"),
        ({"tiers": [1, 2, 3]}, "a-test: tiers is .*; accepted: a list of 5 numbers"),
        ({"tiers": 5}, "a-test: tiers is 5; accepted: a list of 5 numbers"),
        ({"tiers": [1, 2, 2, 4, 5]}, "a-test: tiers is .*each larger than the last"),
        ({"tiers": [0, 1, 2, 3, 4]}, "a-test: tiers is 0; accepted: whole numbers above zero"),
        ({"tiers": [1, 2, 3, 4, 5.5]}, "a-test: tiers is 5.5; accepted: whole numbers"),
        ({"tiers": None}, "a-test: give either `tiers`"),
        ({"goal": 5}, "a-test: give either `tiers`"),
        ({"tiers": None, "goal": 5}, "a-test: give either `tiers`"),
        ({"tiers": None, "goal": True, "tier": "gold"}, "a-test: goal is True; accepted: whole"),
        ({"tiers": None, "goal": 5, "tier": "tin"}, "a-test: tier is 'tin'; accepted: one of clay"),
        ({"secret": "yes", "hint": "h"}, "a-test: secret is 'yes'; accepted: true or false"),
        ({"secret": True}, "a-test: hint is missing"),
        ({"hint": "h"}, "a-test: hint is 'h'; accepted: a hint only where secret is true"),
        ({"colour": "red"}, "a-test: unknown field 'colour'; use category, counts"),
    ],
)
def test_a_mapping_that_cannot_be_used_is_refused_by_field(changes, said):
    with pytest.raises(CatalogueError, match=said):
        achievement_from(mapping(**changes), "garden")


def test_plugins_add_achievements_after_ours(loaded):
    more = loaded.with_added([achievement_from(mapping(), "garden")])
    assert len(more) == len(loaded) + 1
    assert list(more)[-1].origin == "garden"
    assert more.by_id("a-test") is not None
    assert loaded.by_id("a-test") is None


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"id": "first-words"}, "first-words of garden: hermes already has one"),
        ({"category": "luck"}, "a-test: category is 'luck'; accepted: one of conversation"),
        ({"icon": "luck"}, "a-test: icon is 'luck'; accepted: one of "),
    ],
)
def test_what_does_not_fit_into_the_catalogue_is_refused(loaded, changes, said):
    with pytest.raises(CatalogueError, match=said):
        loaded.with_added([achievement_from(mapping(**changes), "garden")])


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"value": "total_luck"}, "value is 'total_luck'"),
        ({"thresholds": (("tin", 1),)}, "tier is 'tin'"),
        ({"thresholds": ()}, "numbers above zero"),
        ({"thresholds": (("gold", 1), ("clay", 2))}, "each larger than the last"),
    ],
)
def test_an_achievement_made_by_hand_is_checked_too(loaded, changes, said):
    handmade = achievement_from(mapping(), "garden")._replace(**changes)
    with pytest.raises(CatalogueError, match=said):
        loaded.with_added([handmade])


def test_two_new_achievements_cannot_share_an_id(loaded):
    item = achievement_from(mapping(), "garden")
    with pytest.raises(HermesError, match="garden already has one"):
        loaded.with_added([item, item._replace(origin="shed")])
