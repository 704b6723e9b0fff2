"""The list of sessions: search, filters, order, trash and restore."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Locator, Page

    from hermes_state import SessionDB
    from support.browsers import Visitor

pytestmark = pytest.mark.clock

GREW = """(some) => {
  const found = document.querySelector("main").innerText.match(/([\\d,]+) sessions?/);
  return found !== null && Number(found[1].replace(",", "")) > some;
}"""
WRITE_ONE = """
from hermes_state import SessionDB
from hermes_state.engine.sqlite import driver
driver.install()
with SessionDB() as db:
    db.create_session("quinces", "telegram", is_owned=False)
    db.append_message("quinces", "user", "Tell me about quinces.")
"""


@pytest.fixture
def three_sessions(db: SessionDB) -> SessionDB:
    """Three short conversations."""
    for number, name in enumerate(("apples", "pears", "plums")):
        db.create_session(name, "cli", started_at=1_790_000_000 + number, is_owned=False)
        db.append_message(name, "user", f"Tell me about {name}.")
        db.append_message(name, "assistant", f"There is much to say about {name}.")
        db.set_session_title(name, name.title())
    return db


def rows(page: Page) -> Locator:
    return page.get_by_role("table", name="Sessions").locator("tbody").get_by_role("row")


def choose(page: Page, *names: str) -> None:
    for name in names:
        page.get_by_role("checkbox", name=f"Select {name}").check()


def test_changes_can_be_undone(three_sessions: SessionDB, page: Page) -> None:
    page.goto("/sessions")
    expect(rows(page)).to_have_count(3)
    choose(page, "Apples", "Pears")
    bar = page.get_by_role("region", name="2 selected")
    bar.get_by_role("button", name="Archive").click()
    expect(page.get_by_text("2 sessions archived")).to_be_visible()
    expect(rows(page)).to_have_count(1)
    page.get_by_role("button", name="Undo").click()
    expect(rows(page)).to_have_count(3)
    choose(page, "Plums")
    page.get_by_role("button", name="Move to trash").click()
    expect(page.get_by_text("1 session moved to the trash")).to_be_visible()
    expect(rows(page)).to_have_count(2)
    page.get_by_role("button", name="Undo").last.click()
    expect(rows(page)).to_have_count(3)
    assert three_sessions.get_session("plums")


def test_sessions_are_pinned_and_tagged_and_found_by_it(
    three_sessions: SessionDB, page: Page
) -> None:
    page.goto("/sessions")
    choose(page, "Pears", "Plums")
    page.get_by_role("button", name="Pin", exact=True).click()
    expect(page.get_by_text("2 sessions pinned")).to_be_visible()
    expect(page.get_by_label("pinned", exact=True)).to_have_count(2)
    choose(page, "Pears")
    page.get_by_role("button", name="Add tag…").click()
    page.get_by_role("textbox", name="Tag").fill("thesis")
    page.keyboard.press("Enter")
    expect(rows(page).filter(has_text="thesis")).to_have_count(1)
    page.get_by_role("button", name="Filters", exact=True).click()
    page.get_by_role("checkbox", name="Pinned only").check()
    expect(rows(page)).to_have_count(2)
    expect(page).to_have_url(re.compile("pinned=true"))
    page.goto("/sessions?tag=thesis")
    expect(rows(page)).to_have_count(1)
    assert three_sessions.tags.tags_of(["pears"]) == {"pears": ["thesis"]}
    page.get_by_role("button", name="Clear filters").click()
    expect(rows(page)).to_have_count(3)


def test_the_trash_restores_and_asks_before_it_purges(
    three_sessions: SessionDB, page: Page
) -> None:
    three_sessions.delete_session("apples")
    three_sessions.delete_session("pears")
    page.goto("/sessions?state=trash")
    choose(page, "Apples")
    page.get_by_role("button", name="Restore").click()
    expect(page.get_by_text("1 session restored")).to_be_visible()
    assert three_sessions.get_session("apples")
    choose(page, "Pears")
    purge = page.get_by_role("button", name="Delete permanently")
    purge.click()
    dialog = page.get_by_role("dialog", name="Delete permanently?")
    expect(dialog.get_by_text("cannot be undone")).to_be_visible()
    dialog.get_by_role("button", name="Cancel").click()
    expect(dialog).to_have_count(0)
    expect(rows(page)).to_have_count(1)
    purge.click()
    dialog.get_by_role("button", name="Delete permanently").click()
    expect(page.get_by_text("The trash is empty")).to_be_visible()
    assert not three_sessions.search_messages("about pears")


def test_a_partial_export_can_be_imported_elsewhere(
    three_sessions: SessionDB, page: Page, tmp_path: Path
) -> None:
    page.goto("/sessions")
    choose(page, "Apples", "Pears")
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Export").click()
    file = tmp_path / "some.jsonl"
    waiting.value.save_as(file)
    assert "about apples" in file.read_text()
    three_sessions.delete_session("apples")
    three_sessions.trash.purge("apples")
    with page.expect_file_chooser() as choosing:
        page.get_by_role("button", name="Import").click()
    choosing.value.set_files(file)
    expect(page.get_by_text("Imported 1 session ")).to_be_visible()
    expect(rows(page)).to_have_count(3)
    assert three_sessions.get_messages("apples")[0]["content"] == "Tell me about apples."


def test_messages_of_another_process_appear_at_once(three_sessions: SessionDB, page: Page) -> None:
    page.goto("/sessions")
    expect(rows(page)).to_have_count(3)
    subprocess.run([sys.executable, "-c", WRITE_ONE], check=True)
    expect(rows(page).filter(has_text="Tell me about quinces.")).to_be_visible()
    expect(rows(page)).to_have_count(4)
    expect(page.get_by_text("4 sessions")).to_be_visible()


def test_matches_are_highlighted_and_link_to_their_message(demo_page: Page) -> None:
    demo_page.goto("/sessions")
    demo_page.get_by_role("searchbox", name="Search all messages").fill("lighthouse")
    hits = demo_page.get_by_role("region", name="Search results")
    marked = hits.locator("mark").first
    expect(marked).to_be_visible()
    assert "lighthouse" in marked.inner_text().lower()
    expect(demo_page).to_have_url(re.compile("q=lighthouse"))
    hits.locator("a[href*='message=']").first.click()
    expect(demo_page).to_have_url(re.compile(r"/sessions/[^?]+\?message=\d+"))
    target = demo_page.locator("article[data-target=true]")
    expect(target).to_be_in_viewport()
    expect(target).to_have_count(1)


def test_filters_are_read_from_and_written_to_the_url(demo_page: Page) -> None:
    demo_page.goto("/sessions?tool=terminal&weekday=0&min_messages=5")
    bar = demo_page.get_by_role("search", name="Filters")
    for terms in ("used terminal", "Mondays", "at least 5 messages"):
        expect(bar.get_by_text(terms)).to_be_visible()
    selected = total(demo_page)
    bar.get_by_role("button", name="Remove filter “Mondays”").click()
    expect(demo_page).not_to_have_url(re.compile("weekday"))
    expect(bar.get_by_text("Mondays")).to_have_count(0)
    demo_page.wait_for_function(GREW, arg=selected)
    bar.get_by_role("combobox", name="Model").click()
    demo_page.get_by_role("option", name=re.compile("claude")).first.click()
    expect(demo_page).to_have_url(re.compile("model=anthropic"))
    bar.get_by_role("button", name="Clear filters").click()
    expect(demo_page).to_have_url(re.compile(r"/sessions$"))


def total(page: Page) -> int:
    lead = page.get_by_text(re.compile(r"^[\d,]+ sessions?$"))
    return int(lead.inner_text().split()[0].replace(",", ""))


def test_a_day_of_the_overview_leads_to_its_sessions(demo_page: Page) -> None:
    demo_page.goto("/")
    panel = demo_page.get_by_role("region", name="Last 14 days")
    # Of the latest day with messages: early in the day there is nothing of today yet.
    panel.get_by_role("link", name=re.compile(r": [1-9]")).last.click()
    expect(demo_page).to_have_url(re.compile(r"/sessions\?day=\d{4}-\d\d-\d\d"))
    expect(rows(demo_page).first).to_be_visible()


def test_archived_sessions_are_listed_separately(
    three_sessions: SessionDB, visitor: Visitor
) -> None:
    three_sessions.set_session_archived("plums")
    page = visitor.open("/sessions")
    expect(rows(page)).to_have_count(2)
    page.get_by_text("Archived 1").click()
    expect(rows(page)).to_have_count(1)
    choose(page, "Plums")
    page.get_by_role("button", name="Unarchive").click()
    expect(page.get_by_text("No archived sessions")).to_be_visible()


# Sorting, columns, selection, views


@pytest.fixture
def priced_sessions(db: SessionDB) -> SessionDB:
    """Eight conversations whose numbers are in different orders."""
    for number in range(8):
        name = f"Talk {number}"
        folder = "/work/atlas" if number % 2 else "/work/heron"
        db.create_session(
            f"t{number}", "cli", started_at=1_790_000_000 + number, is_owned=False,
            cwd=folder, git_branch="main" if number < 4 else "topic",
        )  # fmt: skip
        for _ in range(number * 3 % 8 + 1):
            db.append_message(f"t{number}", "user", "A word", timestamp=1_790_000_100 + number)
        cost = number * 5 % 8 / 4
        db.update_token_counts(f"t{number}", number * 7 % 8 * 1000, 0, estimated_cost_usd=cost)
        db.set_session_title(f"t{number}", name)
    return db


def titles(page: Page) -> list[str]:
    return rows(page).get_by_role("link").all_inner_texts()


def sorted_titles(values: dict[int, int], *, reverse: bool = True) -> list[str]:
    return [f"Talk {n}" for n in sorted(values, key=lambda n: values[n], reverse=reverse)]


def test_columns_sort_the_table_and_back_restores_the_order(
    priced_sessions: SessionDB, page: Page
) -> None:
    page.goto("/sessions")
    expect(rows(page)).to_have_count(8)
    table = page.get_by_role("table", name="Sessions")
    costs = {n: n * 5 % 8 for n in range(8)}
    table.get_by_role("button", name="Cost").click()
    expect(rows(page).first).to_contain_text("Talk 3")
    assert titles(page) == sorted_titles(costs)
    expect(table.get_by_role("columnheader", name="Cost")).to_have_attribute(
        "aria-sort", "descending"
    )
    expect(page).to_have_url(re.compile("sort=cost"))
    table.get_by_role("button", name="Cost").click()
    expect(rows(page).first).to_contain_text("Talk 0")
    assert titles(page) == sorted_titles(costs, reverse=False)
    table.get_by_role("button", name="Messages").click()
    expect(rows(page).first).to_contain_text("Talk 5")
    page.go_back()
    expect(rows(page).first).to_contain_text("Talk 0")
    page.go_back()
    expect(rows(page).first).to_contain_text("Talk 3")
    # Numbers end at the same place.
    cells = rows(page).locator("td[data-number=true]").nth(2)
    assert cells.evaluate("one => getComputedStyle(one).textAlign") == "end"


def test_shift_click_selects_a_range(priced_sessions: SessionDB, page: Page) -> None:
    page.goto("/sessions")
    choose(page, "Talk 6")
    page.get_by_role("checkbox", name="Select Talk 2").click(modifiers=["Shift"])
    expect(page.get_by_role("region", name="5 selected")).to_be_visible()
    page.get_by_role("checkbox", name="Select Talk 4").click(modifiers=["Shift"])
    expect(page.get_by_role("region", name="2 selected")).to_be_visible()
    page.get_by_role("checkbox", name="Select all 8 shown").check()
    expect(page.get_by_role("region", name="8 selected")).to_be_visible()


def test_the_choice_of_columns_is_kept(priced_sessions: SessionDB, page: Page) -> None:
    page.goto("/sessions")
    page.get_by_role("button", name="Choose columns").click()
    expect(page.get_by_role("dialog", name="Choose columns")).to_be_visible()
    for name in ("Folder", "Branch", "Tool errors"):
        page.get_by_role("checkbox", name=name, exact=True).check()
    page.get_by_role("checkbox", name="Model", exact=True).uncheck()
    page.keyboard.press("Escape")
    page.reload()
    table = page.get_by_role("table", name="Sessions")
    expect(table.get_by_role("columnheader", name="Folder")).to_be_visible()
    expect(table.get_by_role("columnheader", name="Model")).to_have_count(0)
    expect(rows(page).first).to_contain_text("atlas")
    expect(rows(page).first).to_contain_text("topic")
    table.get_by_role("button", name="Tool errors").click()
    expect(page).to_have_url(re.compile("sort=tool_errors"))
    expect(rows(page)).to_have_count(8)


def test_sessions_are_filtered_by_folder_and_branch_and_a_view_is_saved(
    priced_sessions: SessionDB, page: Page
) -> None:
    page.goto("/sessions?sort=cost")
    page.get_by_role("combobox", name="Folder").click()
    page.get_by_role("option", name="/work/atlas (4)").click()
    expect(rows(page)).to_have_count(4)
    page.get_by_role("button", name="Filters", exact=True).click()
    page.get_by_role("combobox", name="Git branch").click()
    page.get_by_role("option", name="topic (4)").click()
    expect(rows(page)).to_have_count(2)
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Views").click()
    page.get_by_role("menuitem", name="Save this view").click()
    page.get_by_role("textbox", name="Name").fill("Atlas topics")
    page.keyboard.press("Enter")
    page.goto("/sessions")
    expect(rows(page)).to_have_count(8)
    page.get_by_role("button", name="Views").click()
    page.get_by_role("menuitem", name="Atlas topics").click()
    expect(rows(page)).to_have_count(2)
    expect(page).to_have_url(re.compile("sort=cost"))
    page.get_by_role("button", name="Atlas topics").click()
    page.get_by_role("menuitem", name="Delete view").click()
    expect(page.get_by_role("button", name="Views")).to_be_visible()
    page.go_back()
    expect(rows(page)).to_have_count(8)


def test_the_filters_are_one_row(priced_sessions: SessionDB, page: Page) -> None:
    page.goto("/sessions")
    expect(rows(page)).to_have_count(8)
    bar = page.get_by_role("search", name="Filters")
    assert bar.evaluate("one => one.getBoundingClientRect().height") < 50


# Search


def test_results_are_counted_grouped_and_keep_the_filters(
    priced_sessions: SessionDB, page: Page
) -> None:
    page.goto("/sessions?folder=/work/atlas&branch=topic")
    page.get_by_role("searchbox", name="Search all messages").fill("word")
    results = page.get_by_role("region", name="Search results")
    counts = {n: n * 3 % 8 + 1 for n in (5, 7)}
    total = sum(counts.values())
    expect(page.get_by_text(f"2 sessions, {total} hits in messages.")).to_be_visible()
    expect(results.get_by_role("article")).to_have_count(2)
    group = results.get_by_role("article").filter(has_text="Talk 5")
    expect(group.locator("mark")).to_have_count(3)
    expect(group.get_by_text(f"{counts[5]} hits")).to_be_visible()
    expect(group.get_by_text(f"and {counts[5] - 3} more hits")).to_be_visible()
    expect(page).to_have_url(re.compile(r"folder=.*branch=topic|branch=topic.*folder="))
    page.go_back()
    expect(rows(page)).to_have_count(2)


def test_phrases_match_titles_and_an_excluded_word_alone_is_explained(
    priced_sessions: SessionDB, page: Page
) -> None:
    page.goto("/sessions")
    field = page.get_by_role("searchbox", name="Search all messages")
    field.fill('"Talk 3"')
    results = page.get_by_role("region", name="Search results")
    expect(results.get_by_role("link", name="Talk 3")).to_be_visible()
    expect(results.get_by_text("title match")).to_be_visible()
    field.fill("-ferry")
    expect(page.get_by_role("heading", name="Add a word to find")).to_be_visible()
    expect(page.get_by_text("only removes results")).to_be_visible()
    expect(page.get_by_role("alert")).to_have_count(0)


# Searches that cannot be done, and what the page says about them.
IMPOSSIBLE_SEARCHES = {
    '"': ("Add a word to find", "only spaces or punctuation"),
    "   ": ("Add a word to find", "only spaces or punctuation"),
    '"" OR': ("Add a word to find", "only spaces or punctuation"),
    "- …": ("Add a word to find", "only spaces or punctuation"),
    "-ferry": ("Add a word to find", "only removes results"),
    "ä" * 612: ("The search is too long", "612 characters; at most 500"),
}


def test_a_search_that_cannot_be_done_says_why(priced_sessions: SessionDB, page: Page) -> None:
    page.goto("/sessions")
    expect(rows(page)).to_have_count(8)
    field = page.get_by_role("searchbox", name="Search all messages")
    for query, (title, text) in IMPOSSIBLE_SEARCHES.items():
        field.fill(query)
        expect(page.get_by_role("heading", name=title)).to_be_visible()
        expect(page.get_by_text(text)).to_be_visible()
        expect(page.get_by_role("alert")).to_have_count(0)
        field.fill("word")
        expect(page.get_by_role("region", name="Search results")).to_be_visible()
        expect(page.get_by_role("heading", name=title)).to_have_count(0)
