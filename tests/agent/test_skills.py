"""Skills: one line each in the prompt, read on demand, nothing outside their folders."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from hermes_agent import skills
from hermes_agent.context.window import PROFILES
from hermes_agent.project.files import read_project
from hermes_agent.project.trust import TrustStore, assess_project
from support.agent_conversation import open_conversation, tool_call_step


def make_skill(folder: Path, text: str) -> Path:
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(text)
    return folder


def skill_text(name: str, description: str, rest: str = "Do it.") -> str:
    return f"---\nname: {name}\ndescription: {description}\n---\n\n{rest}\n"


@pytest.fixture
def cwd(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


@pytest.fixture
def bread(hermes_home: Path) -> Path:
    folder = make_skill(
        hermes_home / "skills" / "kitchen" / "bread",
        skill_text("bread", "Bake bread", "Knead for ten minutes."),
    )
    (folder / "recipes").mkdir()
    (folder / "recipes" / "rye.md").write_text("Rye: 500 g.")
    return folder


def test_without_skills_there_is_neither_a_line_nor_a_tool(cwd: Path) -> None:
    with open_conversation(cwd) as conversation:
        conversation.results()
        assert "skill_view" not in conversation.tool_names()
        assert "# Skills" not in conversation.prompt()


def test_a_skill_has_one_line_in_the_prompt_and_is_read_on_demand(bread: Path, cwd: Path) -> None:
    steps = [tool_call_step("skill_view", {"name": "bread"}),
             tool_call_step("skill_view", {"name": "bread", "file": "recipes/rye.md"})]  # fmt: skip
    with open_conversation(cwd, *steps) as conversation:
        skill, rye = conversation.results()
        assert "- bread: Bake bread" in conversation.prompt()
        assert "Knead" not in conversation.prompt()
    assert skill == {
        "skill": "bread",
        "folder": str(bread),
        "content": "Knead for ten minutes.\n",
        "files": ["recipes/rye.md"],
        "error": None,
    }
    assert rye["content"] == "Rye: 500 g."


def test_skills_are_one_or_two_levels_deep(hermes_home: Path) -> None:
    folder = hermes_home / "skills"
    make_skill(folder / "one", skill_text("one", "First"))
    make_skill(folder / "group" / "two", skill_text("two", "Second"))
    make_skill(folder / "group" / "more" / "three", skill_text("three", "Third"))
    make_skill(folder / ".hidden", skill_text("hidden", "Hidden"))
    assert [skill.name for skill in skills.find_skills(hermes_home)] == ["one", "two"]


@pytest.mark.usefixtures("bread")
def test_the_trusted_skill_of_a_project_wins(hermes_home: Path, cwd: Path) -> None:
    mine = make_skill(cwd / ".hermes" / "skills" / "x", skill_text("bread", "Bake our bread"))
    (result,) = skills.find_skills(hermes_home, assess_project(cwd).trusted)
    assert result.description == "Bake bread"
    TrustStore().trust(read_project(cwd))
    (result,) = skills.find_skills(hermes_home, assess_project(cwd).trusted)
    assert (result.description, result.folder) == ("Bake our bread", mine)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("Just words.", "must start with `---`"),
        ("---\nname: x\n---\nWords.", "have a description"),
        ("---\nname: x\ndescription: y\nno end", "must start with `---`"),
        ("---\nname: [\n---\n", "not valid YAML"),
        ("---\nname: a b\ndescription: y\n---\n", "its name may have"),
        ("---\nname: 5\ndescription: y\n---\n", "its name may have"),
        ("---\ndescription: 7\n---\n", "have a description"),
        ("---\n- a\n---\n", "must consist of"),
        ("x" * 1_000_001, "larger than"),
    ],
)
def test_a_broken_skill_is_listed_with_its_problem_and_not_offered(
    bread: Path, hermes_home: Path, cwd: Path, caplog: pytest.LogCaptureFixture, text: str,
    problem: str,
) -> None:  # fmt: skip
    make_skill(hermes_home / "skills" / "broken", text)
    with caplog.at_level(logging.WARNING):
        broken = next(skill for skill in skills.find_skills(hermes_home) if skill.problem)
    assert problem in broken.problem
    assert problem in caplog.text
    with open_conversation(cwd, tool_call_step("skill_view", {})) as conversation:
        assert conversation.results()[0]["skills"] == {"bread": "Bake bread"}
        assert [skill.name for skill in conversation.bundle.skills if not skill.problem] == [
            "bread"
        ]


def test_a_description_may_have_a_colon_without_quotes(hermes_home: Path) -> None:
    text = skill_text("tea", 'Use when: the user says "tea"')
    make_skill(hermes_home / "skills" / "tea", text)
    (skill,) = skills.find_skills(hermes_home)
    assert (skill.problem, skill.description) == ("", 'Use when: the user says "tea"')


def test_a_skill_without_a_name_is_called_like_its_folder(hermes_home: Path) -> None:
    make_skill(hermes_home / "skills" / "tea", "---\r\ndescription: Make tea\r\n---\r\nBoil.")
    (result,) = skills.find_skills(hermes_home)
    assert (result.name, result.description) == ("tea", "Make tea")


@pytest.mark.parametrize("name", ["../secret", "/etc/passwd", "link", "a\0b", "recipes", "none"])
def test_only_files_inside_the_skill_folder_can_be_read(bread: Path, cwd: Path, name: str) -> None:
    (bread.parent / "secret").write_text("the secret")
    (bread / "link").symlink_to(bread.parent / "secret")
    with open_conversation(
        cwd, tool_call_step("skill_view", {"name": "bread", "file": name})
    ) as conversation:
        (result,) = conversation.results()
    assert result["error"]
    assert "content" not in result


def test_an_unknown_skill_returns_the_available_names(bread: Path, cwd: Path) -> None:
    with open_conversation(cwd, tool_call_step("skill_view", {"name": "cake"})) as conversation:
        assert conversation.results()[0]["error"] == "Unknown skill 'cake'; available: bread."


def test_the_prompt_has_the_whole_description_of_a_skill(hermes_home: Path, cwd: Path) -> None:
    description = "A toolkit for PDF files. " + "Use it when a form is filled in. " * 30
    assert len(description) > 1_000
    make_skill(hermes_home / "skills" / "pdf", skill_text("pdf", description))
    with open_conversation(cwd) as conversation:
        conversation.results()
        assert f"- pdf: {description.strip()}" in conversation.prompt()


def test_long_descriptions_are_shortened_evenly_and_no_skill_is_left_out(
    hermes_home: Path, cwd: Path
) -> None:
    for number in range(60):
        make_skill(
            hermes_home / "skills" / f"s{number:02}", skill_text(f"s{number:02}", "long " * 50)
        )
    make_skill(hermes_home / "skills" / "short", skill_text("short", "Short and complete"))
    with open_conversation(cwd, tool_call_step("skill_view", {})) as conversation:
        (result,) = conversation.results()
        lines = conversation.prompt().partition("# Skills")[2].splitlines()[1:]
        schema = next(
            tool
            for tool in conversation.first_request()["tools"]
            if tool["function"]["name"] == "skill_view"
        )
    assert len(lines) == 61
    assert "- short: Short and complete" in lines
    assert len({len(line) for line in lines if "short" not in line}) == 1
    assert 7_500 < len("\n".join(lines)) <= PROFILES[-1].skills_characters
    assert len(result["skills"]) == 61
    assert len(json.dumps(schema)) < 400


def test_more_skills_than_fit_by_name_are_counted() -> None:
    many = [skills.Skill(f"skill-{number:03}", "Words " * 9, Path("/")) for number in range(500)]
    lines = skills.prompt_lines(many, 8_000)
    listed = lines.count("- skill-")
    assert f"({500 - listed} more: call skill_view without a name)" in lines
    assert len(lines) <= 8_000
    assert listed > 200


def test_a_sub_agent_has_the_skills(bread: Path, cwd: Path) -> None:
    delegate = tool_call_step("delegate_task", {"tasks": [{"goal": "bake"}]})
    with open_conversation(cwd, delegate, {"say": "Baked."}) as conversation:
        conversation.results()
        child = conversation.server.requests[1]
    assert "- bread: Bake bread" in child["messages"][0]["content"]
    assert "skill_view" in [tool["function"]["name"] for tool in child["tools"]]
