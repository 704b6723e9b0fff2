"""Backups, imports and permissions in the browser."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from playwright.sync_api import expect

from hermes_agent.permissions.grants import GRANTS_FILE, Grants
from hermes_core.instance_record import hold_lock
from hermes_import.follower_status import FollowerStatus, lock_path
from support.claude_files import ClaudeFile

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from hermes_state import SessionDB


def test_a_backup_is_written_verified_and_its_restore_explained(
    page: Page, db: SessionDB, hermes_home: Path
) -> None:
    db.create_session("talk", "cli", is_owned=False)
    page.goto("/data")
    panel = page.get_by_role("region", name="Backups")
    expect(panel.get_by_text("No backups yet.")).to_be_visible()
    panel.get_by_role("button", name="Back up now").click()
    expect(panel.get_by_text("is complete.")).to_be_visible()
    panel.get_by_role("button", name="Verify").click()
    expect(panel.get_by_text("is intact")).to_be_visible()
    panel.get_by_role("button", name="Restore").click()
    dialog = page.get_by_role("dialog")
    [path] = (hermes_home / "backups").glob("*.zip")
    expect(dialog).to_contain_text(f"restore {path}")
    expect(dialog).to_contain_text("1 session")


def test_a_double_click_writes_one_backup(page: Page, db: SessionDB, hermes_home: Path) -> None:
    db.create_session("talk", "cli", is_owned=False)
    page.goto("/data")
    panel = page.get_by_role("region", name="Backups")
    write = panel.get_by_role("button", name="Back up now")
    expect(write).to_be_enabled()
    sent: list[str] = []
    page.on("request", lambda request: sent.append(f"{request.method} {request.url}"))
    write.evaluate("(one) => { one.click(); one.click(); }")
    expect(panel.get_by_text("is complete.")).to_be_visible()
    assert len([one for one in sent if one.startswith("POST ")]) == 1
    assert len(list((hermes_home / "backups").glob("*.zip"))) == 1


def test_the_focus_stays_on_a_button_that_was_busy(page: Page, db: SessionDB) -> None:
    db.create_session("talk", "cli", is_owned=False)
    page.goto("/data")
    write = page.get_by_role("button", name="Back up now")
    expect(write).to_be_enabled()
    write.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_text("is complete.")).to_be_visible()
    expect(write).to_be_focused()


def test_the_history_of_another_agent_is_imported(page: Page, db: SessionDB) -> None:
    page.goto("/data")
    panel = page.get_by_role("region", name="Import from other agents")
    expect(panel.get_by_text("No histories of other agents")).to_be_visible()
    ClaudeFile(Path.home()).exchange("hello", "Hi.")
    page.reload()
    panel.get_by_role("button", name="Import Claude Code").click()
    expect(panel.get_by_text("claude-code: 1 new, 0 extended, 2 messages.")).to_be_visible()
    assert db.session_count() == 1


def test_an_import_shows_failures_and_whether_agents_are_followed(
    page: Page, hermes_home: Path
) -> None:
    file = ClaudeFile(Path.home()).exchange("hello", "Hi.").write({"type": "new-kind"})
    cut = file.path.with_name("cut.jsonl.gz")
    cut.write_bytes(b"not gzip")
    page.goto("/data")
    panel = page.get_by_role("region", name="Import from other agents")
    expect(panel.get_by_text("hermes config set import.follow true")).to_be_visible()
    panel.get_by_role("button", name="Import everything").click()
    expect(panel.get_by_text(f"Not read: {cut}: Not a gzipped file")).to_be_visible()
    expect(panel.get_by_text("Not imported: 1 of kind new-kind")).to_be_visible()
    with hold_lock(lock_path()):
        FollowerStatus().with_failure("disk error", 1.0, "codex").save()
        page.reload()
        expect(panel.get_by_text("are imported while they work")).to_be_visible()
        expect(panel.get_by_text("codex cannot be followed: disk error")).to_be_visible()


def test_a_rule_is_revoked(page: Page, hermes_home: Path) -> None:
    grants = Grants(hermes_home / GRANTS_FILE)
    grants.add(["network"])
    page.goto("/permissions")
    rules = page.get_by_role("region", name="Always allowed")
    rules.get_by_role("button", name="Revoke: network").click()
    expect(rules.get_by_text("No rules")).to_be_visible()
    assert grants.always() == []
