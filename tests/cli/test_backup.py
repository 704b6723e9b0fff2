"""`hermes backup` and `hermes restore`, as real processes with concurrent writers."""

from __future__ import annotations

import ast
import json
import os
import shutil
import stat
import subprocess
import sys
import time
import zipfile
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pexpect
import pytest

from hermes_core.config.file import ConfigFile
from hermes_core.home_files import HOME_FILES, FileCategory, category_of, files_in
from hermes_state import SessionDB
from hermes_state.engine.sqlite.driver import sqlite3
from hermes_state.portable.restore import holders_of
from hermes_state.upkeep.health import examine
from support.command_line import command
from support.gateway_process import GatewayProcess
from support.model_servers import model_argument, model_servers
from support.plugin_folders import make_plugin
from support.sample_history import CHAT, OSLO
from support.waiting import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable

    from support.command_line import Hermes

SOURCE = Path(__file__).parents[2] / "src"
WORKER = Path(__file__).with_name("append_until_stopped.py")


@pytest.fixture
def target_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in."""
    folder = tmp_path / "there"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def wait_for(is_true: Callable[[], bool], seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not is_true():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def complete_lines(path: Path) -> list[str]:
    return path.read_text().split("\n")[:-1] if path.exists() else []


def contents(store: Path) -> set[str]:
    with closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as connection:
        problems = [row[0] for row in connection.execute("PRAGMA integrity_check")]
        assert [text for text in problems if text != "ok" and "FTS5 table" not in text] == []
        return {row[0] for row in connection.execute("SELECT content FROM messages")}


def test_a_backup_is_one_private_file_with_a_manifest(
    hermes: Hermes, history: Path, target_folder: Path
) -> None:
    (history / "config.yaml").write_text("display:\n  color: never\n")
    (history / ".env").write_text("SECRET=1\n")
    result = hermes("backup", "--json")
    facts = json.loads(result.out)
    path = Path(facts["path"])
    assert (result.code, path.parent) == (0, target_folder)
    assert path.name.startswith("hermes-backup-20")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert (facts["sessions"], facts["messages"], facts["schema_version"]) == (2, 5, 26)
    assert set(facts["files"]) == {"state.db", "config.yaml"}
    with zipfile.ZipFile(path) as archive:
        manifest = json.loads(archive.read("manifest.json"))
        assert set(archive.namelist()) == {"state.db", "config.yaml", "manifest.json"}
    assert manifest["files"] == facts["files"]
    assert manifest["format"] == "hermes-backup"
    secrets = json.loads(hermes("backup", "with.zip", "--with-secrets", "--json").out)
    assert ".env" in secrets["files"]
    assert len(list(target_folder.iterdir())) == 2  # nothing temporary is left


def test_a_backup_overwrites_nothing(hermes: Hermes, history: Path, target_folder: Path) -> None:
    (target_folder / "mine.zip").write_text("precious")
    refused = hermes("backup", "mine.zip")
    assert refused.code == 2
    assert "already exists" in refused.err
    assert (target_folder / "mine.zip").read_text() == "precious"
    assert hermes("backup", "nowhere/x.zip").code == 2


def test_a_backup_taken_while_four_processes_write(
    hermes: Hermes, hermes_home: Path, target_folder: Path, tmp_path: Path
) -> None:
    stop = tmp_path / "stop"
    reports = [tmp_path / f"said-{number}" for number in range(4)]
    workers = [
        subprocess.Popen([sys.executable, str(WORKER), f"w{number}", str(report), str(stop)])
        for number, report in enumerate(reports)
    ]
    try:
        wait_for(lambda: all(len(complete_lines(report)) > 50 for report in reports))
        for number in range(3):
            before = {line for report in reports for line in complete_lines(report)}
            assert hermes("backup", f"{number}.zip").code == 0
            assert hermes("restore", f"{number}.zip", "--to", f"restored-{number}").code == 0
            after = {line for report in reports for line in complete_lines(report)}
            result = contents(target_folder / f"restored-{number}" / "state.db")
            assert before <= result
            assert len(after) > len(before)  # they did write meanwhile
    finally:
        stop.touch()
        for worker in workers:
            assert worker.wait(PATIENCE_SECONDS) == 0
    restored = target_folder / "restored-2"
    with SessionDB(restored / "state.db") as db:
        db.wait_for_index(10)
        per_session = {row["id"]: row["message_count"] for row in db.list_sessions_rich(limit=-1)}
        assert sum(per_session.values()) == db.message_count()
        for session, count in per_session.items():
            texts = [message.content for message in db.messages.iter_messages(session)]
            assert texts == [f"{session} {number}" for number in range(count)]
    findings = examine(restored / "state.db")
    assert [finding for finding in findings if finding.status == "failed"] == []


def test_restoring_asks_for_confirmation_and_keeps_the_old_files(
    hermes: Hermes, history: Path, target_folder: Path
) -> None:
    hermes("backup", "b.zip")
    with SessionDB() as db:
        db.create_session("later", "cli")
        db.search.fill()
    refused = hermes("restore", "b.zip")
    assert refused.code == 2
    assert "pass --yes" in refused.err
    child = pexpect.spawn(command("restore", "b.zip")[0], command("restore", "b.zip")[1:],
                          encoding="utf-8", timeout=PATIENCE_SECONDS)  # fmt: skip
    child.expect(r"\[y/N\]")
    child.sendline("n")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 1
    with SessionDB() as db:
        assert db.get_session("later") is not None
    result = hermes("restore", "b.zip", "--yes", "--json")
    manifest = json.loads(result.out)
    with SessionDB() as db:
        assert db.get_session("later") is None
        assert db.get_session_title(OSLO) == "Weather in Oslo"
        assert [hit["session_id"] for hit in db.search_messages("degrees")] == [OSLO]
    aside = Path(manifest["moved_to"])
    assert aside.parent == history
    assert {"state.db", "search.db"} <= set(manifest["moved"])
    with SessionDB(aside / "state.db") as db:
        assert db.get_session("later") is not None
        assert db.message_count() == 5


def test_a_store_in_use_is_left_alone(
    hermes: Hermes, history: Path, target_folder: Path, tmp_path: Path
) -> None:
    hermes("backup", "b.zip")
    stop, report = tmp_path / "stop", tmp_path / "said"
    with subprocess.Popen([sys.executable, str(WORKER), "w", str(report), str(stop)]) as worker:
        wait_for(lambda: len(complete_lines(report)) > 3)
        refused = hermes("restore", "b.zip", "--yes")
        stop.touch()
    assert refused.code == 1
    assert f"process {worker.pid}" in refused.err
    assert "append_until_stopped.py" in refused.err
    with SessionDB() as db:
        assert db.message_count("w") == len(complete_lines(report))
    assert not list(history.glob("before-restore-*"))


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (["python3", "-I", "-c", "from hermes_cli.main import entry; entry()"], "hermes"),
        (["/usr/bin/python3.11", "-P", "-m", "hermes_cli", "gateway", "run"], "hermes gateway run"),
        (["/bin/sqlite3", "-readonly", "state.db"], "sqlite3"),
        (["/opt/tool.py", "state.db"], "tool.py state.db"),
        (["/usr/bin/python3", "-i"], "python3"),
    ],
)
def test_a_process_that_uses_the_store_is_named_as_it_was_started(
    tmp_path: Path, words: list[str], name: str
) -> None:
    (tmp_path / "state.db").touch()
    (tmp_path / "proc/7/fd").mkdir(parents=True)
    (tmp_path / "proc/7/fd/3").symlink_to(tmp_path / "state.db")
    (tmp_path / "proc/7/cmdline").write_text("".join(f"{word}\0" for word in words))
    assert holders_of(tmp_path / "state.db", tmp_path / "proc") == [f"{name} (process 7)"]


def test_a_reader_counts_as_use_where_processes_cannot_be_listed(
    hermes: Hermes, history: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from hermes_core.errors import StoreInUseError  # noqa: PLC0415 - used once
    from hermes_state.portable import restore  # noqa: PLC0415 - used once

    monkeypatch.setattr(restore, "holders_of", lambda _store: [])
    with SessionDB(read_only=True) as db:
        db.message_count()
        with pytest.raises(StoreInUseError):
            restore.ensure_unused(history / "state.db")
    restore.ensure_unused(history / "state.db")


def break_archive(path: Path, how: str) -> None:
    data = bytearray(path.read_bytes())
    if how == "cut":
        del data[len(data) // 2 :]
    elif how == "flipped":
        data[len(data) // 3] ^= 0xFF
    elif how == "something else":
        data[:] = b"hello"
    path.write_bytes(data)


@pytest.mark.parametrize("how", ["cut", "flipped", "something else", "missing"])
def test_a_damaged_backup_changes_nothing(
    hermes: Hermes, history: Path, target_folder: Path, how: str
) -> None:
    hermes("backup", "b.zip")
    if how == "missing":
        (target_folder / "b.zip").unlink()
    else:
        break_archive(target_folder / "b.zip", how)
    before = sorted(path.name for path in history.iterdir())
    refused = hermes("restore", "b.zip", "--yes")
    assert refused.code in {1, 2}
    assert refused.err.startswith("hermes: ")
    assert "Traceback" not in refused.err
    with SessionDB() as db:
        assert db.message_count() == 5
    assert sorted(path.name for path in history.iterdir()) == before


def test_a_manifest_cannot_name_files_outside(
    hermes: Hermes, history: Path, target_folder: Path, tmp_path: Path
) -> None:
    hermes("backup", "b.zip")
    with zipfile.ZipFile("b.zip") as old, zipfile.ZipFile("evil.zip", "w") as new:
        manifest = json.loads(old.read("manifest.json"))
        manifest["files"]["../outside"] = manifest["files"]["state.db"]
        new.writestr("manifest.json", json.dumps(manifest))
        new.writestr("../outside", old.read("state.db"))
        new.writestr("state.db", old.read("state.db"))
    assert hermes("restore", "evil.zip", "--to", str(tmp_path / "in")).code == 2
    assert not (tmp_path / "outside").exists()


def test_a_damaged_present_history_is_moved_aside_too(
    hermes: Hermes, history: Path, target_folder: Path
) -> None:
    hermes("backup", "b.zip")
    for companion in history.glob("state.db-*"):
        companion.unlink()
    (history / "state.db").write_bytes(b"garbage" * 1000)
    assert hermes("restore", "b.zip", "--yes").code == 0
    with SessionDB() as db:
        assert db.message_count(CHAT) == 1


def test_the_original_can_open_a_restored_backup(
    hermes: Hermes, hermes_home: Path, shared_data: Path, target_folder: Path
) -> None:
    shutil.copyfile(shared_data / "state-schema16.db", hermes_home / "state.db")
    count = len(contents(hermes_home / "state.db"))
    assert hermes("backup", "b.zip").code == 0
    assert hermes("restore", "b.zip", "--to", "elsewhere").code == 0
    assert len(contents(target_folder / "elsewhere" / "state.db")) == count
    mode = (target_folder / "elsewhere" / "state.db").stat().st_mode
    assert stat.S_IMODE(mode) == 0o600
    assert os.environ["HERMES_HOME"] == str(hermes_home)


def test_replies_that_waited_are_marked_not_blindly_sent(
    hermes: Hermes, history: Path, target_folder: Path
) -> None:
    with SessionDB() as db:
        db.outbox.add("k", platform="telegram", target={"chat": 1}, payload={"text": "hi"})
    hermes("backup", "b.zip")
    hermes("restore", "b.zip", "--to", "elsewhere")
    with SessionDB(target_folder / "elsewhere" / "state.db") as db:
        assert db.outbox.claim().was_ambiguous
    with SessionDB() as db:
        assert not db.outbox.claim().was_ambiguous


def test_achievements_are_included_in_a_backup_and_restored(
    hermes: Hermes, history: Path, target_folder: Path
) -> None:
    assert hermes("achievements", "rescan").code == 0
    name = "plugins/hermes-achievements/state.json"
    earned = (history / name).read_text()
    assert '"first-words"' in earned
    manifest = json.loads(hermes("backup", "b.zip", "--json").out)
    assert name in manifest["files"]
    assert hermes("restore", "b.zip", "--to", "new").code == 0
    assert (target_folder / "new" / name).read_text() == earned
    assert stat.S_IMODE((target_folder / "new" / name).stat().st_mode) == 0o600
    (history / name).write_text("{}")
    assert hermes("restore", "b.zip", "--yes").code == 0
    assert (history / name).read_text() == earned
    aside = next(history.glob("before-restore-*"))
    assert (aside / name).read_text() == "{}"
    assert not (history / "plugins/hermes-achievements/scan_snapshot.json").exists()


def test_a_backup_from_before_there_were_achievements_is_restored(
    hermes: Hermes, history: Path, target_folder: Path
) -> None:
    assert hermes("backup", "b.zip").code == 0
    with zipfile.ZipFile("b.zip") as archive:
        assert set(archive.namelist()) == {"state.db", "manifest.json"}
    state = history / "plugins" / "hermes-achievements" / "state.json"
    state.parent.mkdir(parents=True)
    state.write_text('{"unlocks": {}}')
    assert hermes("restore", "b.zip", "--yes").code == 0
    assert state.read_text() == '{"unlocks": {}}'
    assert target_folder.is_dir()


OWN_FILES = {
    "AGENTS.md": "Answer briefly.",
    "approvals.json": '["run: echo *"]',
    "commands/mine.md": "Summarize the day.",
    "cron/jobs.json": "[]",
    "memories/USER.md": "Likes tea.",
    "memories/people/ada/USER.md": "Likes coffee.",
    "plugins/dice/__init__.py": "def register(ctx): pass",
    "plugins/dice/plugin.yaml": "name: dice",
    "prompt_history": "hello",
    "skills/tea/SKILL.md": "How to make tea.",
    "trusted_folders.json": "{}",
}
OTHER_FILES = {
    ".env": "EXAMPLE_KEY=k",
    "cache/models.json": "{}",
    "libraries/mcp/a.py": "",
    "logs/hermes.log": "",
    "media/sent/abc/a.png": "",
    "media/odd.png": "",
    "notes.txt": "of another program",
    "plugins/.libraries/dice/a.py": "",
    "plugins/dice/__pycache__/a.pyc": "",
    "search.db": "",
    "spool/other.db-1": "",
    "workspaces/owner/a.txt": "",
}


def write_files(home: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text)


def test_a_backup_contains_everything_that_cannot_be_rebuilt_and_names_the_rest(
    hermes: Hermes, history: Path, target_folder: Path
) -> None:
    write_files(history, OWN_FILES | OTHER_FILES)
    script = history / "skills/tea/boil.sh"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o700)
    shown = hermes("backup", "b.zip")
    with zipfile.ZipFile("b.zip") as archive:
        names = set(archive.namelist())
    assert names >= {*OWN_FILES, "skills/tea/boil.sh", "state.db"}
    assert not names & set(OTHER_FILES)
    for name, reason in {
        ".env": "use --with-secrets",
        "libraries": "downloaded again",
        "notes.txt": "not a file of Hermes",
        "media/odd.png": "not a file of Hermes",
        "spool/other.db-1": "not a file of Hermes",
        "plugins/.libraries": "downloaded again",
        "search.db": "rebuilt",
        "workspaces": "working folders",
    }.items():
        assert any(name in line and reason in line for line in shown.err.splitlines()), shown.err
    restored = target_folder / "new"
    assert hermes("restore", "b.zip", "--to", str(restored), "--accept-settings").code == 0
    for name, text in OWN_FILES.items():
        assert (restored / name).read_text() == text
    assert os.access(restored / "skills/tea/boil.sh", os.X_OK)
    assert not os.access(restored / "skills/tea/SKILL.md", os.X_OK)


def test_secrets_in_a_backup_are_not_called_missing(
    hermes: Hermes, history: Path, target_folder: Path
) -> None:
    assert "secrets" not in hermes("backup", "a.zip", "--with-secrets").err
    assert "secrets" not in hermes("backup", "b.zip").err  # there are none
    write_files(history, {".env": "EXAMPLE_KEY=k"})
    assert "--with-secrets" in hermes("backup", "c.zip").err
    assert "secrets" not in hermes("backup", "d.zip", "--with-secrets").err
    with zipfile.ZipFile("d.zip") as archive:
        assert archive.read(".env") == b"EXAMPLE_KEY=k"


def test_links_into_other_folders_are_named_and_not_followed(
    hermes: Hermes, history: Path, target_folder: Path
) -> None:
    (target_folder / "dotfiles").mkdir()
    (target_folder / "dotfiles/SKILL.md").write_text("How to make tea.")
    (history / "skills").mkdir()
    (history / "skills/tea").symlink_to(target_folder / "dotfiles")
    (target_folder / "config.yaml").write_text("store:\n  trash_days: 3\n")
    (history / "config.yaml").unlink(missing_ok=True)
    (history / "config.yaml").symlink_to(target_folder / "config.yaml")
    shown = hermes("backup", "b.zip")
    assert "skills/tea" in shown.err
    with zipfile.ZipFile("b.zip") as archive:
        assert "skills/tea/SKILL.md" not in archive.namelist()
        assert b"trash_days" in archive.read("config.yaml")


def test_every_file_that_commands_write_has_a_category(
    hermes: Hermes, hermes_home: Path, tmp_path: Path
) -> None:
    make_plugin(tmp_path, "dice", "def register(ctx): pass")
    ConfigFile.of_home().set("keys.telegram", "token")
    with model_servers() as serve:
        model = model_argument(serve("[{say: Hello.}]"))
        for arguments in (
            ("chat", "-q", "hello", "--model", model),
            ("config", "set", "store.trash_days", "3"),
            ("permissions", "add", "run: echo *"),
            ("plugins", "install", str(tmp_path / "plugins" / "dice"), "--yes"),
            ("sessions", "search", "hello"),
            ("sessions", "optimize"),
            ("achievements",),
            ("usage",),
            ("import", "--dry-run"),
            ("backup", f"{hermes_home}/backups/"),
        ):
            assert hermes(*arguments).code == 0, arguments
    gateway = GatewayProcess()
    gateway.start()
    wait_for(gateway.is_up)
    gateway.stop()
    found = dict(files_in(hermes_home))
    assert {"approvals.json", "plugins/dice/__init__.py", "logs/", "search.db"} <= found.keys()
    assert [name for name, category in found.items() if category is FileCategory.UNKNOWN] == []


def test_every_file_that_the_source_names_has_a_category() -> None:
    names = {
        name
        for path in sorted(SOURCE.rglob("*.py"))
        for name in names_below_the_home(ast.parse(path.read_text()))
    }
    assert len(names) > 15
    unknown = {FileCategory.UNKNOWN}
    assert [name for name in names if {category_of(name), category_of(f"{name}/")} == unknown] == []


def names_below_the_home(module: ast.Module) -> list[str]:
    """The names in expressions such as `hermes_home() / NAME`."""
    constants = {
        ast.unparse(target): node.value.value
        for node in module.body
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Constant)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
    }
    joined = [
        node.right
        for node in ast.walk(module)
        if isinstance(node, ast.BinOp) and ast.unparse(node.left).endswith("hermes_home()")
    ]
    values = [
        node.value if isinstance(node, ast.Constant) else constants.get(ast.unparse(node))
        for node in joined
    ]
    return [value for value in values if isinstance(value, str)]


def test_the_documentation_lists_every_file_with_its_category() -> None:
    rows = set((SOURCE.parent / "docs/reference/home-folder.md").read_text().splitlines())
    for entry in HOME_FILES:
        row = f"| `{entry.pattern}` | {entry.contents} | {entry.category.name.lower()} |"
        assert row in rows, row
