"""The catalogue is complete and consistent, and rejects invalid achievements."""

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
# The usage of one person in fourteen months; top tiers have to exceed it.
HEAVY_TOOL_CALLS = 259_958
HEAVY_MESSAGES = 603_542
HEAVY_SESSIONS = 8_564
# A failed shell call is also a failed call, which has its own achievement; the derived value
# agents_in_project is made from project_agents.
UNREWARDED = {"failed_commands", "project_agents"}


@pytest.fixture(scope="module")
def builtin():
    return catalogue.load()


def mapping(**changes):
    fields = {
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
    return {field: value for field, value in {**fields, **changes}.items() if value is not None}


def metric_of(value):
    if value.startswith("max_"):
        return re.sub(r"^max_|_in_(session|day)$", "", value)
    return re.sub(r"^(total|peak|distinct)_", "", value)


def contrast(one, other):
    def luminance(colour):
        parts = [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted([luminance(one), luminance(other)])
    return (high + 0.05) / (low + 0.05)


def test_there_are_over_115_achievements_in_about_ten_categories(builtin):
    assert len(builtin) >= 115
    assert 8 <= len(builtin.categories) <= 12
    sizes = Counter(item.category for item in builtin)
    assert set(sizes) == {category.id for category in builtin.categories}
    assert min(sizes.values()) >= 5


def test_categories_have_an_order_a_name_and_a_text(builtin):
    assert [category.order for category in builtin.categories] == list(
        range(1, len(builtin.categories) + 1)
    )
    assert all(category.name and category.text.endswith(".") for category in builtin.categories)
    order = [category.id for category in builtin.categories]
    places = [order.index(item.category) for item in builtin]
    assert places == sorted(places)


def test_the_outline_has_the_tiers_and_categories_of_the_catalogue(builtin):
    outline = catalogue.load_outline()
    assert outline.tiers == builtin.tiers
    assert outline.categories == builtin.categories


def test_an_id_may_be_added_but_never_removed_or_renamed(builtin):
    frozen = IDS.read_text(encoding="utf-8").split()
    assert frozen == sorted(set(frozen))
    ids = [item.id for item in builtin]
    assert set(frozen) - set(ids) == set(), "an ID that users may have earned is missing"
    assert set(ids) - set(frozen) == set(), f"add the new ids to {IDS.name}"
    assert len(ids) == len(set(ids))


def test_there_are_five_tiers_in_rising_order(builtin):
    assert [tier.id for tier in builtin.tiers] == TIERS
    assert [tier.name for tier in builtin.tiers] == [name.title() for name in TIERS]


def test_tiers_can_be_read_on_light_and_on_dark_backgrounds(builtin):
    for tier in builtin.tiers:
        assert contrast(tier.colour, "#ffffff") >= 4.5
        assert contrast(tier.glow, "#14161a") >= 4.5


def test_a_ladder_has_five_rising_thresholds_and_a_single_step_has_one(builtin):
    for item in builtin:
        numbers = [number for _, number in item.thresholds]
        assert numbers == sorted(set(numbers))
        assert numbers[0] >= 1
        if item.is_ladder:
            assert [tier for tier, _ in item.thresholds] == TIERS
        else:
            assert len(numbers) == 1


def test_at_most_half_of_the_achievements_are_plain_totals(builtin):
    totals = [item for item in builtin if item.value.startswith("total_") and item.is_ladder]
    assert len(totals) <= len(builtin) / 2
    assert len([item for item in builtin if item.kind == "counter"]) <= len(builtin) * 0.4


def test_every_kind_is_used_and_fits_its_value(builtin):
    assert {item.kind for item in builtin} == set(catalogue.ACHIEVEMENT_KINDS)
    for item in builtin:
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


def test_no_two_ladders_measure_the_same_value(builtin):
    values = Counter(item.value for item in builtin if item.is_ladder)
    assert [value for value, count in values.items() if count > 1] == []


def test_texts_are_unique_sentences(builtin):
    for field in ("name", "text", "counts"):
        texts = [getattr(item, field) for item in builtin]
        assert [text for text, count in Counter(texts).items() if count > 1] == []
        assert all(text == text.strip() and text for text in texts)
    assert all(item.counts.endswith(".") and item.text[-1] in ".?" for item in builtin)
    assert all(item.unit for item in builtin)


def test_secrets_have_hints_and_others_have_none(builtin):
    secrets = [item for item in builtin if item.secret]
    assert len(secrets) >= 18
    assert len({secret.hint for secret in secrets}) == len(secrets)
    assert all(secret.hint.endswith(".") for secret in secrets)
    assert [item.id for item in builtin if item.hint and not item.secret] == []


def test_a_hint_names_neither_a_number_nor_the_metric(builtin):
    for item in builtin:
        assert not re.search(r"\d", item.hint), item.id
        words = metric_of(item.value).split("_")
        stems = [word[:5].rstrip("s") for word in words if len(word) > 2]
        hinted = re.findall(r"[a-z]+", item.hint.lower())
        matches = [word for word in hinted for stem in stems if word.startswith(stem)]
        assert matches == [], item.id


def test_every_value_is_known(builtin):
    assert {item.value for item in builtin} <= catalogue.known_values()


def test_every_metric_defines_values():
    expected = 3 * len(COUNTS) + len(PEAKS) + len(VARIETY) + len(catalogue.DERIVED_VALUES)
    assert len(catalogue.known_values()) == expected
    assert {"total_commits", "max_commits_in_session", "max_commits_in_day"} <= (
        catalogue.known_values()
    )
    assert {"peak_clean_run", "distinct_models", "longest_streak"} <= catalogue.known_values()


def test_every_metric_and_derived_value_is_rewarded(builtin):
    used = {item.value for item in builtin}
    assert {metric_of(value) for value in used} >= {*COUNTS, *PEAKS, *VARIETY} - UNREWARDED
    assert set(catalogue.DERIVED_VALUES) <= used


def test_derived_values_are_documented_by_a_sentence():
    assert all(
        text[0].isupper() and text.endswith(".") for text in catalogue.DERIVED_VALUES.values()
    )


def test_every_icon_exists_and_at_least_70_are_used(builtin):
    used = {item.icon for item in builtin}
    assert used <= set(catalogue.icons())
    assert len(used) >= 70


@pytest.mark.parametrize("name", sorted(catalogue.icons()))
def test_an_icon_is_well_formed_and_has_only_shapes(name):
    seen = []
    parser = expat.ParserCreate()
    parser.StartElementHandler = lambda tag, attributes: seen.append((tag, attributes))
    parser.Parse(f"<svg>{catalogue.icons()[name]}</svg>", True)
    assert len(seen) > 1
    shapes = {"path", "circle", "rect", "line", "polyline", "polygon", "ellipse"}
    assert {tag for tag, _ in seen[1:]} <= shapes
    assert not any(key.startswith("on") or "href" in key for _, item in seen for key in item)


def test_the_icon_licence_is_included():
    text = (catalogue.CATALOGUE_FOLDER / "LUCIDE-LICENSE.txt").read_text(encoding="utf-8")
    assert "ISC License" in text
    assert "Lucide" in text


def test_a_new_user_unlocks_something_in_the_first_minutes(builtin):
    firsts = {item.value for item in builtin if item.thresholds[0] == ("clay", 1)}
    assert {
        "total_messages_sent",
        "total_tool_calls",
        "total_shell_commands",
        "total_files_written",
        "total_titled",
    } <= firsts


def test_top_tiers_exceed_the_heaviest_known_usage(builtin):
    tops = {item.value: dict(item.thresholds)["aether"] for item in builtin if item.is_ladder}
    assert tops["total_tool_calls"] >= 1_000_000 > HEAVY_TOOL_CALLS
    assert tops["total_messages_sent"] > HEAVY_MESSAGES / 3
    assert tops["total_conversations"] > 3 * HEAVY_SESSIONS
    assert tops["longest_streak"] >= 365
    assert tops["longest_week_streak"] >= 52
    assert tops["longest_month_streak"] >= 24


@pytest.mark.parametrize("value", ["total_tool_calls", "max_tool_calls_in_session"])
def test_tool_calls_have_a_ladder_whose_first_step_is_low(builtin, value):
    (ladder,) = [item for item in builtin if item.value == value and item.is_ladder]
    assert ladder.thresholds[0][1] <= 10


def test_an_achievement_is_found_by_its_id(builtin):
    assert builtin.by_id("first-words").name == "First Words"
    assert builtin.by_id("nothing") is None
    assert all(item.origin == "hermes" for item in builtin)


def test_a_mapping_becomes_a_ladder_or_a_single_step():
    ladder = achievement_from(mapping(), "garden")
    assert ladder.is_ladder
    assert ladder.thresholds == tuple(zip(TIERS, [1, 2, 3, 4, 5], strict=True))
    assert ladder.origin == "garden"
    single = achievement_from(mapping(tiers=None, goal=7, tier="gold"), "garden")
    assert not single.is_ladder
    assert single.thresholds == (("gold", 7),)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"id": None}, "id is missing; accepted: lower-case words"),
        ({"id": "Not Kebab"}, "id is 'Not Kebab'; accepted: lower-case words"),
        ({"name": None}, "a-test: name is missing; accepted: a non-empty string"),
        ({"text": "  "}, "a-test: text is '  '; accepted: a non-empty string"),
        ({"counts": 3}, "a-test: counts is 3; accepted: a non-empty string"),
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
def test_an_invalid_mapping_is_rejected_with_its_field(changes, message):
    with pytest.raises(CatalogueError, match=message):
        achievement_from(mapping(**changes), "garden")


def test_plugins_add_achievements_after_the_built_in_ones(builtin):
    more = builtin.with_added([achievement_from(mapping(), "garden")])
    assert len(more) == len(builtin) + 1
    assert list(more)[-1].origin == "garden"
    assert more.by_id("a-test") is not None
    assert builtin.by_id("a-test") is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"id": "first-words"}, "first-words of garden: hermes already has one"),
        ({"category": "luck"}, "a-test: category is 'luck'; accepted: one of conversation"),
        ({"icon": "luck"}, "a-test: icon is 'luck'; accepted: one of "),
    ],
)
def test_an_unknown_category_or_icon_and_a_used_id_are_rejected(builtin, changes, message):
    with pytest.raises(CatalogueError, match=message):
        builtin.with_added([achievement_from(mapping(**changes), "garden")])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"value": "total_luck"}, "value is 'total_luck'"),
        ({"thresholds": (("tin", 1),)}, "tier is 'tin'"),
        ({"thresholds": ()}, "numbers above zero"),
        ({"thresholds": (("gold", 1), ("clay", 2))}, "each larger than the last"),
    ],
)
def test_a_directly_constructed_achievement_is_validated(builtin, changes, message):
    achievement = achievement_from(mapping(), "garden")._replace(**changes)
    with pytest.raises(CatalogueError, match=message):
        builtin.with_added([achievement])


def test_two_new_achievements_cannot_share_an_id(builtin):
    item = achievement_from(mapping(), "garden")
    with pytest.raises(HermesError, match="garden already has one"):
        builtin.with_added([item, item._replace(origin="shed")])
