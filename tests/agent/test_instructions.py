"""Instruction files: AGENTS.md of the repository down to the working folder, and a global one."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from hermes_agent.events import Notice
from hermes_agent.project.instructions import read_instructions
from support.agent_conversation import open_conversation

if TYPE_CHECKING:
    from pathlib import Path

KIB_32 = 32_768


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    (folder / ".git").mkdir(parents=True)
    (folder / "a" / "b").mkdir(parents=True)
    return folder


def test_files_are_read_from_the_global_one_down_to_the_working_folder(
    repository: Path, hermes_home: Path
) -> None:
    hermes_home.mkdir(parents=True, exist_ok=True)
    (repository.parent / "AGENTS.md").write_text("Outside of the repository.")
    files = (hermes_home, repository, repository / "a", repository / "a" / "b")
    for number, folder in enumerate(files):
        (folder / "AGENTS.md").write_text(f"Rule {number}.")
    with open_conversation(repository / "a" / "b") as conversation:
        conversation.results()
        prompt = conversation.prompt()
    places = [prompt.index(f"Rule {number}.") for number in range(4)]
    assert places == sorted(places)
    assert "Outside" not in prompt
    assert str(repository / "a" / "AGENTS.md") in prompt


def test_without_a_repository_only_the_working_folder_counts(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "AGENTS.md").write_text("Of the parent.")
    (tmp_path / "work" / "AGENTS.md").write_text("Of the folder.")
    text = read_instructions(tmp_path / "work", KIB_32).text
    assert "Of the folder." in text
    assert "Of the parent." not in text


def test_claude_md_is_read_in_folders_without_agents_md(repository: Path) -> None:
    (repository / "CLAUDE.md").write_text("From CLAUDE.md.")
    (repository / "a" / "CLAUDE.md").write_text("Not used.")
    (repository / "a" / "AGENTS.md").write_text("From AGENTS.md.")
    text = read_instructions(repository / "a", KIB_32).text
    assert "From CLAUDE.md." in text
    assert "From AGENTS.md." in text
    assert "Not used." not in text


def test_a_file_of_19_kilobytes_is_read_to_its_end_without_a_notice(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("".join(f"Rule {number:043}.\n" for number in range(380)))
    with open_conversation(tmp_path) as conversation:
        events = list(conversation.bundle.agent.turn("hello"))
        assert f"Rule {379:043}." in conversation.prompt()
    assert [event for event in events if isinstance(event, Notice)] == []


def test_the_nearest_file_is_cut_last_and_the_user_is_told_which_one_was(repository: Path) -> None:
    (repository / "AGENTS.md").write_text("Far.\n" * 4_000)
    (repository / "a" / "AGENTS.md").write_text("Near.\n" * 4_000)
    with open_conversation(repository / "a") as conversation:
        notices = [
            event.text
            for event in conversation.bundle.agent.turn("hello")
            if isinstance(event, Notice)
        ]
        prompt = conversation.prompt()
    assert prompt.count("Near.") == 4_000
    assert 0 < prompt.count("Far.") < 4_000
    assert f"(cut; the rest is in {repository / 'AGENTS.md'})" in prompt
    (notice,) = notices
    assert f"of {repository / 'AGENTS.md'}" in notice
    assert "20,000 bytes" in notice or "19,999" in notice


def test_a_file_without_space_is_left_out_and_named(repository: Path) -> None:
    (repository / "AGENTS.md").write_text("Far.\n" * 100)
    (repository / "a" / "AGENTS.md").write_text("x" * (KIB_32 - 10))
    found = read_instructions(repository / "a", KIB_32)
    assert "Far." not in found.text
    assert found.notices[0].startswith(f"{repository / 'AGENTS.md'} was not read")


def test_the_limit_counts_bytes_and_never_splits_a_character(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("é" * KIB_32)
    found = read_instructions(tmp_path, KIB_32)
    assert found.text.count("é") == KIB_32 // 2
    assert "65,536 bytes" in found.notices[0]


def test_links_to_hidden_files_and_pipes_are_not_read(repository: Path, hermes_home: Path) -> None:
    hermes_home.mkdir(parents=True, exist_ok=True)
    (hermes_home / ".env").write_text("KEY=secret-17")
    (repository / "AGENTS.md").symlink_to(hermes_home / ".env")
    os.mkfifo(repository / "a" / "AGENTS.md")
    (repository / "a" / "CLAUDE.md").symlink_to(hermes_home / ".env")
    found = read_instructions(repository / "a", KIB_32)
    assert found.text == ""
