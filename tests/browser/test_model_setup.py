"""The set-up card of the chat page: from no model to an answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playwright.sync_api import expect

from hermes_core.config.file import ConfigFile
from support.chat_browser import ask, log

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playwright.sync_api import Page

    from support.dashboards import RunningDashboard


def test_the_setup_card_stays_until_a_model_answers(
    set_model_steps: Callable[[str], str],
    page: Page,
    served: RunningDashboard,
    hermes_home: Path,
) -> None:
    checks = {check["name"]: check for check in served.client.get("/api/health").json()["checks"]}
    assert "No model is configured." in checks["model"]["detail"]
    page.goto("/chat")
    card = page.get_by_role("region", name="Choose a model")
    expect(card).to_contain_text("No model is configured.")
    expect(card).to_contain_text("Ollama http://127.0.0.1:11434/v1: not running")
    expect(card.get_by_role("button", name="Save and test")).to_be_disabled()
    card.get_by_role("combobox", name="Provider").click()
    page.get_by_role("option", name="Mistral").click()
    key = card.get_by_label("API key", exact=True)
    key.fill("not-a-real-key")
    card.get_by_role("button", name="Save and test").click()
    expect(card.get_by_role("status")).to_be_visible()  # the test fails: no such host, or key
    assert ConfigFile.of_home().settings().get_str("llm.model") == "mistral-large-latest"
    assert "not-a-real-key" in (hermes_home / ".env").read_text()
    expect(key).to_have_value("")
    assert "not-a-real-key" not in served.client.get("/api/models/setup").text
    set_model_steps("[{say: Here I am.}]")
    card.get_by_role("button", name="Test").last.click()
    expect(card).to_have_count(0)
    ask(page, "Hello?")
    expect(log(page).get_by_text("Here I am.")).to_be_visible()
    checks = {check["name"]: check for check in served.client.get("/api/health").json()["checks"]}
    assert checks["model"] == {"name": "model", "status": "ok", "detail": "scripted"}
