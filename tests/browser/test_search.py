"""Search on the page, similar conversations, and questions to the history."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from hermes_core.config.file import ConfigFile
from support.browsers import axe_violations
from support.model_servers import HeldServer

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Locator, Page

    from hermes_state import SessionDB
    from support.scripted_server import ScriptServer

MARCH = 1_772_500_000.0  # 3 March 2026
MONTH = 30 * 86_400.0
TALKS = {
    "proxy": (
        "The websocket reconnects every hour",
        "The proxy closes idle connections: a ping fixed it.",
        "Thank you, that fixes the websocket.",
    ),
    "nginx": (
        "How do I configure the nginx proxy for a websocket?",
        "Set the upgrade header for connections of a websocket.",
    ),
    "library": ("Which library renders charts?", "Recharts renders them."),
    "garden": ("When do tomatoes need water?", "In the evening."),
}
# The texts that are highlighted, without changes of the document.
HIGHLIGHTED = """() => [...(CSS.highlights.get("transcript-find") ?? [])]
  .map((one) => one.toString().toLowerCase())"""
QUESTION = "how did we fix the websocket that keeps reconnecting"


@pytest.fixture
def talks(db: SessionDB) -> SessionDB:
    for number, (name, texts) in enumerate(TALKS.items()):
        db.create_session(name, ("cli", "telegram")[number % 2], is_owned=False)
        for place, text in enumerate(texts):
            at = MARCH + number * MONTH + 60 * place
            db.append_message(name, ("user", "assistant")[place % 2], text, timestamp=at)
        db.set_session_title(name, name.title())
    db.search.fill()
    return db


def results(page: Page) -> Locator:
    return page.get_by_role("region", name="Search results")


def search(page: Page, query: str) -> Locator:
    """The field, after the results of a search are shown."""
    field = page.get_by_role("searchbox", name="Search all messages")
    field.fill(query)
    expect(page).to_have_url(re.compile("q="))
    return field


def test_a_question_shows_how_it_was_answered_and_its_best_message_among_others(
    talks: SessionDB, page: Page
) -> None:
    page.goto("/sessions")
    search(page, QUESTION)
    best = results(page).get_by_role("article").first
    expect(best.get_by_role("link", name="Proxy", exact=True)).to_be_visible()
    expect(best.get_by_text("contains 2 of 4 words").first).to_be_visible()
    expect(best.get_by_text(re.compile("The proxy closes idle connections")).first).to_be_visible()
    expect(best.locator("mark", has_text="reconnects")).to_be_visible()  # another form
    status = page.get_by_role("status").filter(has_text="hits in messages")
    expect(status).to_contain_text("at least one of these words, in any form: fix, websocket")
    order = page.get_by_role("radiogroup", name="Order of the results")
    expect(order.get_by_role("radio", name="Best match")).to_be_checked()
    order.get_by_text("Oldest").click()
    expect(page).to_have_url(re.compile("by=oldest"))
    expect(order.get_by_role("radio", name="Oldest")).to_be_checked()
    assert axe_violations(page, "wcag2a", "wcag2aa", "best-practice") == []


def test_a_misspelled_word_is_corrected_and_the_page_states_it(
    talks: SessionDB, page: Page
) -> None:
    page.goto("/sessions")
    search(page, "librery charts")
    expect(page.get_by_text("No message contains “librery”. Searched for library")).to_be_visible()
    expect(results(page).locator("mark", has_text="library")).to_be_visible()


def test_a_result_opens_at_its_message_with_the_words_highlighted_in_their_forms(
    talks: SessionDB, page: Page
) -> None:
    page.goto("/sessions")
    search(page, QUESTION)
    results(page).get_by_role("link", name=re.compile("The websocket reconnects")).first.click()
    target = page.locator("article[data-target=true]")
    expect(target).to_contain_text("The websocket reconnects every hour")
    expect(target).to_be_in_viewport()
    page.wait_for_function(f"() => ({HIGHLIGHTED})().includes('reconnects')")
    found = page.evaluate(HIGHLIGHTED)
    assert {"websocket", "reconnects", "fixe"} & set(found)
    assert any(text.startswith("fix") for text in found)  # in another message


def test_the_arrows_go_through_the_results_and_escape_returns_and_clears(
    talks: SessionDB, page: Page
) -> None:
    page.goto("/sessions")
    expect(page.get_by_role("table", name="Sessions")).to_be_visible()
    page.keyboard.press("/")
    field = page.get_by_role("searchbox", name="Search all messages")
    expect(field).to_be_focused()
    page.keyboard.type("websock")  # the last word is a prefix while it is typed
    items = results(page).locator("[data-list-item]")
    expect(items).to_have_count(4)
    page.keyboard.press("ArrowDown")
    expect(items.nth(0)).to_be_focused()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("j")
    expect(items.nth(2)).to_be_focused()
    for _ in range(2):
        page.keyboard.press("ArrowUp")
    expect(items.nth(0)).to_be_focused()
    page.keyboard.press("ArrowUp")
    expect(field).to_be_focused()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Escape")
    expect(field).to_be_focused()
    expect(field).to_have_value("websock")
    page.keyboard.press("Escape")
    expect(field).to_have_value("")
    expect(page.get_by_role("table", name="Sessions")).to_be_visible()
    page.go_back()
    expect(items).to_have_count(4)
    page.keyboard.press("/")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.locator("article[data-target=true]")).to_be_in_viewport()


def test_a_bar_of_the_time_line_narrows_the_search_and_a_chip_widens_it_again(
    talks: SessionDB, page: Page
) -> None:
    page.goto("/sessions?q=websocket")
    groups = results(page).get_by_role("article")
    expect(groups).to_have_count(2)
    bars = page.get_by_role("toolbar", name="Hits over time").get_by_role("button")
    expect(bars).to_have_count(2)
    bars.nth(1).focus()
    page.keyboard.press("ArrowLeft")
    expect(bars.nth(0)).to_be_focused()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("since=2026-03-0.*until=2026-03-"))
    expect(groups).to_have_count(1)
    expect(groups.get_by_role("link", name="Proxy", exact=True)).to_be_visible()
    filters = page.get_by_role("search", name="Filters")
    filters.get_by_role("button", name=re.compile("Remove filter “since")).click()
    filters.get_by_role("button", name=re.compile("Remove filter “until")).click()
    expect(groups).to_have_count(2)


def test_the_author_and_the_period_are_filters_with_chips(talks: SessionDB, page: Page) -> None:
    page.goto("/sessions?q=websocket")
    groups = results(page).get_by_role("article")
    expect(groups).to_have_count(2)
    page.get_by_role("combobox", name="Written by").select_option("Written by Hermes")
    expect(groups).to_have_count(1)
    expect(page).to_have_url(re.compile("role=assistant"))
    page.get_by_role("button", name="Remove filter “written by hermes”").click()
    expect(groups).to_have_count(2)
    page.get_by_role("combobox", name="Period").select_option("Last 7 days")
    expect(page.get_by_role("heading", name="No results")).to_be_visible()
    page.get_by_role("button", name="Search without filters").click()
    expect(groups).to_have_count(2)


def test_a_search_without_results_offers_what_else_to_try(talks: SessionDB, page: Page) -> None:
    page.goto("/sessions")
    search(page, '"websocket tomatoes"')
    expect(page.get_by_role("heading", name="No results")).to_be_visible()
    expect(page.get_by_text("hermes models get minilm")).to_be_visible()
    assert axe_violations(page, "wcag2a", "wcag2aa", "best-practice") == []
    page.get_by_role("button", name="Search for: websocket tomatoes").click()
    expect(results(page).get_by_role("article").first).to_be_visible()


def test_vectors_that_are_missing_are_counted(talks: SessionDB, page: Page) -> None:
    ConfigFile.of_home().set("search.embeddings", "http://127.0.0.1:9/v1#none")
    page.goto("/sessions?q=websocket")
    total = sum(map(len, TALKS.values()))
    text = f"Preparing search by meaning: 0 of {total} messages."
    expect(page.get_by_role("progressbar", name=text)).to_be_attached()


def test_a_transcript_links_to_similar_conversations(talks: SessionDB, page: Page) -> None:
    page.goto("/sessions/proxy")
    similar = page.get_by_role("region", name="Similar conversations")
    expect(similar.get_by_role("link")).to_have_count(1)
    expect(similar).to_contain_text("websocket")
    similar.get_by_role("link", name=re.compile("Nginx")).click()
    expect(page.get_by_role("heading", name="Nginx")).to_be_visible()
    expect(page.locator("article[data-target=true]")).to_be_in_viewport()
    assert axe_violations(page, "wcag2a", "wcag2aa", "best-practice") == []


def test_the_palette_finds_messages_while_the_last_word_is_typed(
    talks: SessionDB, page: Page
) -> None:
    page.goto("/settings")
    expect(page.get_by_role("heading", name="Settings").first).to_be_visible()
    page.keyboard.press("Control+k")
    palette = page.get_by_role("dialog", name="Command palette")
    expect(palette.get_by_role("textbox")).to_be_focused()
    page.keyboard.type("need wat")
    found = palette.get_by_role("button", name=re.compile("Garden"))
    expect(found.locator("mark", has_text="water")).to_be_visible()
    assert axe_violations(page, "wcag2a", "wcag2aa", "best-practice") == []
    found.click()
    expect(page.locator("article[data-target=true]")).to_contain_text("When do tomatoes need water")


# Questions to the history


def ask(page: Page, question: str) -> None:
    page.get_by_role("searchbox", name="Question").fill(question)
    page.get_by_role("button", name="Ask", exact=True).click()


def test_each_sentence_of_an_answer_opens_the_message_that_it_rests_on(
    talks: SessionDB, page: Page, answering: Callable[..., ScriptServer]
) -> None:
    answering("[{say: 'A ping every 30 seconds fixed it [1]. It was the moon.'}]")
    page.goto("/ask")
    ask(page, QUESTION)
    answer = page.get_by_role("status", name="Answer")
    expect(answer).to_contain_text("A ping every 30 seconds fixed it.")
    expect(answer).not_to_contain_text("moon")
    expect(answer).to_contain_text("1 sentence of the model without a quotation left out")
    cited = page.get_by_role("region", name="Cited messages")
    expect(cited.get_by_role("listitem")).to_have_count(1)
    assert axe_violations(page, "wcag2a", "wcag2aa", "best-practice") == []
    answer.get_by_role("link", name="Quotation 1").click()
    expect(page).to_have_url(re.compile(r"/sessions/proxy\?message="))
    expect(page.locator("article[data-target=true]")).to_be_in_viewport()
    page.go_back()
    expect(page.get_by_role("searchbox", name="Question")).to_have_value(QUESTION)


def test_quotations_are_shown_without_a_model_and_nothing_found_is_stated(
    talks: SessionDB, page: Page
) -> None:
    page.goto(f"/ask?q={QUESTION.replace(' ', '+')}")
    page.get_by_role("checkbox", name=re.compile("quotations only")).check()
    page.get_by_role("button", name="Ask", exact=True).click()
    nearest = page.get_by_role("region", name="Nearest messages")
    expect(nearest.get_by_role("listitem").first).to_contain_text("websocket")
    page.get_by_role("checkbox", name=re.compile("quotations only")).uncheck()
    ask(page, QUESTION)
    expect(page.get_by_text("These are the quotations.")).to_be_visible()  # no model is configured
    expect(nearest.get_by_role("listitem").first).to_contain_text("websocket")
    ask(page, "zzyzx qwxyz")
    expect(page.get_by_role("heading", name="Nothing found in the history")).to_be_visible()


def test_a_model_that_takes_long_is_stopped_and_the_quotations_remain(
    talks: SessionDB, page: Page, answering: Callable[..., ScriptServer]
) -> None:
    server = answering("[{say: 'Late [1].'}]", HeldServer)
    page.goto("/ask")
    ask(page, QUESTION)
    expect(page.get_by_text("Waiting for scripted…")).to_be_visible()
    page.get_by_role("button", name="Stop").click()
    expect(page.get_by_role("alert")).to_contain_text("The model could not answer")
    expect(page.get_by_role("region", name="Nearest messages")).to_be_visible()
    assert isinstance(server, HeldServer)
    server.release()
