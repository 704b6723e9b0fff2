"""Transcripts: tools, diffs, images, long conversations, untrusted markup."""

from __future__ import annotations

import base64
import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect

from support.browsers import DESKTOP, PHONE, follow, overflowing_elements

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Page, Route

    from hermes_state import SessionDB
    from support.browsers import ReturningVisitor

# One red dot.
DOT = base64.b64encode(
    bytes.fromhex(
        "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de"
        "0000000c49444154789c63f8cfc0000003010100c9fe92ef0000000049454e44ae426082"
    )
).decode()
EVIL = "\n\n".join(
    [
        "Say <script>window.evil = 1</script> and <img src=x onerror='window.evil = 2'>.",
        "<script>window.evil = 1</script>",
        "[click me](javascript:window.evil=3) ![spy](https://elsewhere.example/spy.png)",
        "<iframe src='https://elsewhere.example/'></iframe> <svg onload='window.evil=4'></svg>",
        "<a href='https://elsewhere.example/' ping='https://elsewhere.example/ping'>x</a>",
        "<style>body { display: none }</style>",
        "[honest](https://elsewhere.example/page)",
    ]
)
LONG = 1_000


def tool_call(name: str, **arguments: Any) -> dict[str, Any]:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"id": f"call-{name}", "type": "function", "function": function}


@pytest.fixture
def session_with_tools(db: SessionDB) -> SessionDB:
    """A conversation with a tool, an edit and a picture."""
    db.create_session("work", "cli", model="some/model", is_owned=False)
    picture = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{DOT}"}}
    db.append_message("work", "user", [{"type": "text", "text": "What is this?"}, picture])
    run = tool_call("terminal", command="ls -l")
    db.append_message("work", "assistant", "I look.", tool_calls=[run], reasoning="First, look.")
    db.append_message("work", "tool", "total 0", tool_call_id=run["id"], tool_name="terminal")
    edit = tool_call("patch", path="a.txt", old_string="one\ntwo", new_string="one\nthree")
    db.append_message("work", "assistant", "", tool_calls=[edit])
    db.append_message("work", "tool", "done", tool_call_id=edit["id"], tool_name="patch")
    db.append_message("work", "assistant", "A **dot**.\n\n```python\nprint(1)\n```")
    return db


def test_tools_are_collapsed_and_expand_and_a_change_is_shown_as_a_diff(
    session_with_tools: SessionDB, page: Page
) -> None:
    page.goto("/sessions/work")
    log = page.get_by_label("Conversation messages")
    expect(log.locator("strong", has_text="dot")).to_be_visible()
    expect(log.get_by_text("total 0")).to_be_hidden()
    tool = log.locator("details", has_text="ls -l")
    tool.locator("summary").click()
    expect(tool.get_by_text("total 0")).to_be_visible()
    change = log.locator("details", has_text="patch")
    change.locator("summary").click()
    expect(change.locator("[data-sign='-']")).to_have_text("- two")
    expect(change.locator("[data-sign='+']")).to_have_text("+ three")
    log.get_by_text("Reasoning").click()
    expect(log.get_by_text("First, look.")).to_be_visible()
    picture = log.get_by_role("img", name="Attached image")
    picture.scroll_into_view_if_needed()
    page.wait_for_function("one => one.naturalWidth === 1", arg=picture.element_handle())
    expect(log.locator("code.language-python")).to_be_visible()


def test_text_that_looks_like_code_stays_text(db: SessionDB, page: Page) -> None:
    db.create_session("evil", "telegram", is_owned=False)
    db.set_session_title("evil", "<img src=x onerror=window.evil=5>")
    for role in ("user", "assistant"):
        db.append_message("evil", role, EVIL)
    db.append_message("evil", "tool", EVIL, tool_name="<b>tool</b>")
    page.goto("/")
    expect(page.get_by_text("onerror").first).to_be_visible()
    for path in ("/sessions", "/sessions?q=honest", "/chat", "/sessions/evil"):
        page.get_by_text("onerror").first.evaluate("one => { one.dataset.left = '' }")
        follow(page, path)
        expect(page.locator("[data-left]")).to_have_count(0)
        expect(page.get_by_text("onerror").first).to_be_visible()
    log = page.get_by_label("Conversation messages")
    log.locator("summary").first.click()
    expect(log.get_by_text("<script>window.evil = 1</script>").first).to_be_visible()
    assert log.locator("script, iframe, svg[onload], style, img").count() == 0
    assert log.locator("a[href^='javascript'], a[ping]").count() == 0
    log.get_by_text("click me").last.click()
    assert page.evaluate("window.evil") is None
    honest = log.get_by_role("link", name="honest")
    assert honest.get_attribute("rel") == "noopener noreferrer"


def test_a_long_conversation_is_read_upwards_without_a_jump(db: SessionDB, page: Page) -> None:
    db.create_session("long", "cli", is_owned=False)
    lines = "\n\n".join(["A line of the answer that goes on for a while."] * 4)
    texts = [
        {
            "role": "assistant" if n % 2 else "user",
            "content": f"Message {n}.\n\n{lines[: n % 7 * 40]}",
        }
        for n in range(LONG)
    ]
    db.append_messages_batch("long", texts)
    page.goto("/sessions/long")
    log = page.get_by_label("Conversation messages")
    expect(log.get_by_text(f"Message {LONG - 1}.")).to_be_in_viewport()
    visible: set[int] = set()
    for _ in range(400):
        before = read_positions(page)
        visible.update(before)
        if min(before) < LONG - 180:
            break
        scroll(page, -500)
        after = read_positions(page)
        # Whatever was in sight before and still is has moved down by as much as was scrolled.
        moved = {number: after[number] - before[number] for number in after if number in before}
        assert moved, "what was being read is gone"
        assert all(-40 <= item <= 560 for item in moved.values()), moved
    assert min(visible) < LONG - 180
    assert visible.issuperset(range(min(visible), LONG))  # none was left out
    assert log.locator("article").count() < 60  # however many were read


READ = """() => {
  const log = document.querySelector('[aria-label="Conversation messages"]');
  const frame = log.getBoundingClientRect();
  const found = {};
  for (const one of log.querySelectorAll("article")) {
    const box = one.getBoundingClientRect();
    const number = one.innerText.match(/Message (\\d+)\\./)?.[1];
    if (number && box.bottom > frame.top && box.top < frame.bottom) found[number] = box.top;
  }
  return found;
}"""


def read_positions(page: Page) -> dict[int, float]:
    """Which messages are in sight, and where."""
    return {int(number): top for number, top in page.evaluate(READ).items()}


SCROLLED = """async ([name, pixels]) => {
  const log = document.querySelector(`[aria-label="${name}"]`);
  log.scrollBy(0, pixels);
  let last = NaN;
  for (let still = 0; still < 4; ) {
    await new Promise((done) => requestAnimationFrame(done));
    const now = log.scrollTop + log.scrollHeight * 1e6;
    still = now === last ? still + 1 : 0;
    last = now;
  }
}"""


def scroll(page: Page, pixels: int) -> None:
    """Scroll, and wait until the layout is stable."""
    page.evaluate(SCROLLED, ["Conversation messages", pixels])


def test_a_link_to_a_message_shows_it_among_a_thousand(db: SessionDB, page: Page) -> None:
    db.create_session("long", "cli", is_owned=False)
    texts = [
        {"role": "assistant" if n % 2 else "user", "content": f"Message {n}."} for n in range(LONG)
    ]
    ids = db.append_messages_batch("long", texts)
    page.goto(f"/sessions/long?message={ids[500]}")
    target = page.locator("article[data-target=true]")
    expect(target).to_have_text(re.compile("Message 500\\."))
    expect(target).to_be_in_viewport()
    wanted = page.get_by_text("Message 640.")
    for _ in range(100):  # later messages are loaded while scrolling
        if wanted.is_visible():
            break
        scroll(page, 600)
    expect(wanted).to_be_visible()


@pytest.mark.parametrize("message", ["999999", "-5", "99999999999999999999"])
def test_a_link_to_a_message_that_is_gone_opens_the_conversation(
    session_with_tools: SessionDB, visitor: ReturningVisitor, page: Page, message: str
) -> None:
    visitor.problems.allow(r"/messages\?around=")
    page.goto(f"/sessions/work?message={message}&find=dot")
    notice = page.get_by_role("alert")
    expect(notice).to_contain_text("This message no longer exists")
    log = page.get_by_label("Conversation messages")
    expect(log.locator("strong", has_text="dot")).to_be_in_viewport()
    expect(page).not_to_have_url(re.compile(f"message={message}"))
    expect(page.get_by_role("button", name="Try again")).to_have_count(0)
    notice.get_by_role("button", name="Dismiss").click()
    expect(notice).to_have_count(0)
    expect(log).to_be_focused()


def test_a_conversation_is_renamed_tagged_exported_and_deleted(
    session_with_tools: SessionDB, page: Page, tmp_path: Path
) -> None:
    page.goto("/sessions/work")
    page.get_by_role("button", name="Rename", exact=True).click()
    page.get_by_role("textbox", name="Title").fill("A red dot")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="A red dot")).to_be_visible()
    expect(page).to_have_title("A red dot · Hermes")
    tags = page.get_by_role("combobox", name="Tags").or_(page.get_by_role("textbox", name="Tags"))
    tags.fill("pictures")
    tags.press("Enter")
    expect(page.get_by_label("Details", exact=True).get_by_text("pictures").first).to_be_visible()
    for name, part in {
        "Markdown": "What is this?",
        "HTML": "<!doctype html>",
        "JSON": '"What is this?',
        "JSONL (Hermes export)": "What is this?",
    }.items():
        page.get_by_role("button", name="Export").click()
        with page.expect_download() as waiting:
            page.get_by_role("menuitem", name=name, exact=True).click()
        file = tmp_path / waiting.value.suggested_filename
        waiting.value.save_as(file)
        assert part.lower() in file.read_text().lower(), name
    page.get_by_role("button", name="More actions").click()
    page.get_by_role("menuitem", name="Move to trash").click()
    expect(page).to_have_url(re.compile("/sessions$"))
    expect(page.get_by_text("1 session moved to the trash")).to_be_visible()
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_text("A red dot")).to_be_visible()
    assert session_with_tools.get_session_title("work") == "A red dot"


def test_a_branch_and_its_parent_form_a_tree(session_with_tools: SessionDB, page: Page) -> None:
    session_with_tools.edits.branch("work", "other", title="Another way")
    session_with_tools.append_message("other", "user", "And differently?")
    page.goto("/sessions/other")
    family = page.get_by_role("region", name="Related sessions")
    expect(family.get_by_role("link", name=re.compile("Another way"))).to_have_attribute(
        "aria-current", "page"
    )
    expect(family.get_by_text("branch", exact=False).first).to_be_visible()
    family.get_by_role("link", name=re.compile("What is this")).click()
    expect(page).to_have_url(re.compile("/sessions/work"))
    expect(page.get_by_role("region", name="Related sessions").get_by_role("link")).to_have_count(2)


def test_an_unknown_conversation_is_reported(page: Page) -> None:
    page.goto("/")
    page.goto("/no/such/page")
    expect(page.get_by_role("heading", name="Page not found")).to_be_visible()
    page.get_by_role("link", name="Go to overview").click()
    expect(page.get_by_role("heading", name="Welcome")).to_be_visible()


@pytest.fixture
def long_session(db: SessionDB) -> list[int]:
    """A conversation of a thousand messages; the IDs of them."""
    db.create_session("long", "cli", is_owned=False)
    texts = [
        {
            "role": "assistant" if n % 2 else "user",
            "content": f"Message {n}." + (" A heron stands here." if n % 200 == 33 else ""),
            "timestamp": 1_790_000_000.0 + n * 3,
            "token_count": 70 if n % 2 else None,
        }
        for n in range(LONG)
    ]
    return db.append_messages_batch("long", texts)


WHEEL = """async () => {
  const log = document.querySelector('[aria-label="Conversation messages"]');
  let most = 0, still = 0, last = "";
  while (still < 60) {  // frames
    log.scrollBy(0, -3000);
    await new Promise((done) => requestAnimationFrame(done));
    most = Math.max(most, log.querySelectorAll("article").length);
    const now = log.querySelector("article")?.innerText ?? "";
    still = now === last ? still + 1 : 0;
    last = now;
    if (now.includes("Message 0.")) return { most, isFirst: true };
  }
  return { most, isFirst: false };
}"""


def test_the_wheel_reaches_the_first_message_and_both_ends_have_a_button(
    long_session: list[int], page: Page
) -> None:
    page.goto("/sessions/long")
    log = page.get_by_label("Conversation messages")
    expect(log.get_by_text(f"Message {LONG - 1}.")).to_be_in_viewport()
    expect(log.get_by_text("70 tokens").last).to_be_visible()
    expect(log.get_by_text("3 s", exact=True).last).to_be_visible()
    for _ in range(20):  # a slow answer of the server ends a turn of the wheel
        result = page.evaluate(WHEEL)
        assert result["most"] < 60
        if result["isFirst"]:
            break
    expect(log.get_by_text("Message 0.", exact=True)).to_be_visible()
    page.get_by_role("button", name="Go to the last message").click()
    expect(log.get_by_text(f"Message {LONG - 1}.")).to_be_in_viewport()
    page.get_by_role("button", name="Go to the first message").click()
    expect(log.get_by_text("Message 0.", exact=True)).to_be_in_viewport()
    assert log.locator("article").count() < 60


def test_the_outline_leads_to_every_prompt(long_session: list[int], page: Page) -> None:
    page.goto("/sessions/long")
    expect(page.get_by_text(f"Message {LONG - 1}.")).to_be_in_viewport()
    page.get_by_role("button", name="Prompts").click()
    outline = page.get_by_role("navigation", name="Prompts")
    expect(outline.get_by_role("button").first).to_contain_text("Message 0.")
    assert outline.get_by_role("button").count() < 40  # of five hundred
    outline.evaluate("one => { one.scrollTop = 34 * 200 }")
    outline.get_by_role("button", name=re.compile(r"Message 400\.")).click()
    target = page.locator("article[data-target=true]")
    expect(target).to_contain_text("Message 400.")
    expect(target).to_be_in_viewport()
    expect(page).to_have_url(re.compile(f"message={long_session[400]}"))
    expect(page.get_by_role("button", name="Prompts")).to_be_focused()
    page.go_back()
    expect(page).not_to_have_url(re.compile("message="))


def test_find_goes_through_all_matches_of_a_conversation(
    long_session: list[int], page: Page
) -> None:
    page.goto("/sessions/long")
    field = page.get_by_role("searchbox", name="Find in conversation")
    field.fill("heron")
    tools = page.get_by_role("toolbar")
    target = page.locator("article[data-target=true]")
    for number in range(1, 4):
        expect(tools.get_by_role("status")).to_have_text(f"{number} of 5")
        expect(target).to_contain_text(f"Message {(number - 1) * 200 + 33}.")
        expect(target).to_be_in_viewport()
        field.press("Enter")
    expect(tools.get_by_role("status")).to_have_text("4 of 5")
    tools.get_by_role("button", name="Previous match").click()
    expect(tools.get_by_role("status")).to_have_text("3 of 5")
    expect(target).to_contain_text("Message 433.")
    assert page.evaluate("CSS.highlights.get('transcript-find').size") >= 1
    expect(page).to_have_url(re.compile("find=heron"))
    page.reload()
    expect(target).to_contain_text("Message 433.")
    expect(tools.get_by_role("status")).to_have_text("3 of 5")
    field.fill("pelican")
    expect(tools.get_by_role("status")).to_have_text("No matches")


def test_find_says_that_it_lists_only_the_first_matches(db: SessionDB, page: Page) -> None:
    db.create_session("many", "cli", is_owned=False)
    db.append_messages_batch("many", [{"role": "user", "content": "heron"}] * (LONG + 1))
    page.goto("/sessions/many?find=heron")
    status = page.get_by_role("toolbar").get_by_role("status")
    expect(status).to_have_text("1 of the first 1,000 matches. There are more.")
    page.set_viewport_size(PHONE)
    outside = overflowing_elements(page)
    page.set_viewport_size(DESKTOP)
    assert outside == []
    page.get_by_role("button", name="Previous match").click()
    expect(status).to_have_text("1,000 of the first 1,000 matches. There are more.")


def test_find_opens_the_tool_call_that_has_the_text(
    session_with_tools: SessionDB, page: Page
) -> None:
    page.goto("/sessions/work?find=total")
    expect(page.get_by_label("Conversation messages").get_by_text("total 0")).to_be_visible()


READ_STEPS = """() => {
  const log = document.querySelector('[aria-label="Conversation messages"]');
  const frame = log.getBoundingClientRect();
  const found = {};
  for (const one of log.querySelectorAll("p")) {
    const box = one.getBoundingClientRect();
    const number = one.innerText.match(/^Step (\\d+)\\./)?.[1];
    if (number && box.bottom > frame.top && box.top < frame.bottom) found[number] = box.top;
  }
  return found;
}"""


@pytest.mark.parametrize("steps_per_turn", [7, 1000])
def test_messages_above_do_not_move_a_turn_that_began_before_them(
    db: SessionDB, page: Page, steps_per_turn: int
) -> None:
    db.create_session("steps", "cli", is_owned=False)
    rows: list[dict[str, Any]] = []
    for number in range(250):
        if number % steps_per_turn == 0:
            rows.append({"role": "user", "content": f"Prompt {number}."})
        call = tool_call("terminal", command="ls") | {"id": f"c{number}"}
        rows.append({"role": "assistant", "content": f"Step {number}.", "tool_calls": [call]})
        rows.append({"role": "tool", "content": "done", "tool_call_id": f"c{number}"})
    db.append_messages_batch("steps", rows)
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route(re.compile(r"/messages\?.*before="), hold)
    page.goto("/sessions/steps")
    log = page.get_by_label("Conversation messages")
    expect(log.get_by_text("Step 249.")).to_be_in_viewport()
    for _ in range(3):
        scroll(page, -100_000)
        while not held:
            page.wait_for_timeout(20)
        before = page.evaluate(READ_STEPS)
        height = log.evaluate("one => one.scrollHeight")
        held.pop().continue_()
        page.wait_for_function(
            "(height) => document.querySelector('[aria-label=\"Conversation messages\"]')"
            ".scrollHeight !== height",
            arg=height,
        )
        scroll(page, 0)
        after = page.evaluate(READ_STEPS)
        moved = {step: after[step] - before[step] for step in after if step in before}
        assert moved, (before, after)
        assert all(abs(pixels) <= 60 for pixels in moved.values()), moved
    page.unroute_all(behavior="ignoreErrors")


def test_find_steps_through_neighbouring_messages(db: SessionDB, page: Page) -> None:
    db.create_session("near", "cli", is_owned=False)
    lines = "\n\n".join(["A heron stands here."] * 6)
    rows = [
        {"role": "assistant" if n % 2 else "user", "content": f"Message {n}.\n\n{lines}"}
        for n in range(400)
    ]
    rows[350]["content"] = "Message 350. One needle."
    db.append_messages_batch("near", rows)
    page.goto("/sessions/near")
    expect(page.get_by_text("Message 399.")).to_be_in_viewport()
    scroll(page, -300)
    tools, target = page.get_by_role("toolbar"), page.locator("article[data-target=true]")
    field = page.get_by_role("searchbox", name="Find in conversation")
    field.fill("heron")
    for number in range(1, 5):
        expect(tools.get_by_role("status")).to_have_text(f"{number} of 399")
        expect(target).to_contain_text(f"Message {number - 1}.")
        scroll(page, 0)
        expect(target).to_be_in_viewport()
        field.press("Enter")
    field.fill("needle")
    expect(target).to_contain_text("Message 350.")
    field.fill("heron")  # the matches of the search before are no matches of this one
    expect(tools.get_by_role("status")).to_have_text("351 of 399")
    expect(target).to_contain_text("Message 351.")
    expect(target).to_be_in_viewport()
