"""The table of roles: everything that is not listed is denied."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from hermes_agent.memory.facts import AgentMemory
from hermes_agent.tools.jobs import Jobs
from hermes_agent.tools.toolset import standard_tools
from hermes_conversation import slash_commands
from hermes_conversation.slash_commands import CommandOutcome, Surface
from hermes_core.errors import UsageError
from hermes_core.roles import (
    ROLE_RIGHTS,
    TOOL_RIGHTS,
    Person,
    Right,
    Role,
    may,
    may_use_tool,
)
from hermes_state import SessionDB

SOURCE = Path(slash_commands.__file__).parents[1]
OTHER_LISTS = {
    "gateway/config.py": "a setting of hermes-agent",
    "hermes_dashboard/resources/gateway.py": "what a page may do with the gateway process",
    "hermes_tui/commands.py": "leaving works without a connection",
}
PAGE = Path(__file__).parents[2] / "docs/how-to/roles.md"


@pytest.mark.parametrize("role", [Role.MEMBER, Role.GUEST])
def test_a_tool_or_command_without_a_stated_right_is_only_for_the_owner(role: Role) -> None:
    assert may_use_tool(Role.OWNER, "tool_of_a_plugin")
    assert not may_use_tool(role, "tool_of_a_plugin")
    unstated = slash_commands.SlashCommand("greet", "say hello", lambda *_: CommandOutcome("hi"))
    slash_commands.require_right(unstated, Role.OWNER, "")
    with pytest.raises(UsageError):
        slash_commands.require_right(unstated, role, "")


def test_a_command_that_states_nothing_is_for_terminals_and_never_repeated() -> None:
    unstated = slash_commands.SlashCommand("greet", "say hello", lambda *_: CommandOutcome("hi"))
    for surface in (Surface.PAGE, Surface.EDITOR, Surface.CHAT):
        with pytest.raises(UsageError):
            slash_commands.require_surface(unstated, surface)
    assert not unstated.repeatable


def test_no_other_module_decides_by_a_set_of_command_names() -> None:
    names = slash_commands.BUILT_IN_NAMES
    found = []
    for path in sorted(SOURCE.rglob("*.py")):
        if path.name == "slash_commands.py" or str(path.relative_to(SOURCE)) in OTHER_LISTS:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Set | ast.Tuple | ast.List) and len(node.elts) > 1:
                texts = [item.value for item in node.elts if isinstance(item, ast.Constant)]
                words = [str(text).removeprefix("/") for text in texts]
                if len(words) == len(node.elts) and len(names & set(words)) == len(words):
                    found.append(f"{path.relative_to(SOURCE)}:{node.lineno} {words}")
    assert found == []


def test_every_standard_tool_is_listed(tmp_path: Path) -> None:
    jobs = Jobs(environment={})
    with SessionDB(tmp_path / "state.db") as db:
        tools = standard_tools(jobs, None, AgentMemory(db), None)  # type: ignore[arg-type]
    jobs.close()
    assert {tool.name for tool in tools} <= set(TOOL_RIGHTS)


def test_a_role_has_all_rights_of_the_role_below_it() -> None:
    assert ROLE_RIGHTS[Role.GUEST] < ROLE_RIGHTS[Role.MEMBER] < ROLE_RIGHTS[Role.OWNER]
    assert ROLE_RIGHTS[Role.OWNER] == set(Right)


def test_only_the_owner_administers_approves_and_has_extensions() -> None:
    for right in (Right.ADMINISTER, Right.APPROVE, Right.ALL_FILES, Right.EXTENSIONS):
        assert [role for role in Role if may(role, right)] == [Role.OWNER]


def test_the_page_about_roles_has_the_rights_of_the_table() -> None:
    rows = re.findall(r"^\| (.+?) \| (.+?) \| (.+?) \| (.+?) \|$", PAGE.read_text(), re.MULTILINE)
    documented = {name: (owner, member, guest) for name, owner, member, guest in rows[1:]}
    rights = {
        "talk to the agent": Right.CONVERSE,
        "be asked by the agent during a turn, which waits for the answer": Right.QUESTIONS,
        "notes that are included in prompts": Right.MEMORY,
        "search, list and resume conversations": Right.CHAT_HISTORY,
        "files": Right.FILES,
        "sub-agents": Right.DELEGATE,
        "commands, background jobs": Right.COMMANDS,
        "skills, MCP servers, tools of plugins": Right.EXTENSIONS,
        "approve calls": Right.APPROVE,
        "change the model, hand over, restart": Right.ADMINISTER,
    }
    for name, right in rights.items():
        given = tuple(cell != "no" for cell in documented[name])
        assert given == tuple(may(role, right) for role in Role), name


def test_every_person_has_a_safe_folder_name_of_their_own() -> None:
    people = [
        Person("telegram", "42"),
        Person("telegram", "../../etc"),
        Person("telegram", "A"),
        Person("telegram", "a"),
        Person("telegram-a", ""),
        Person("matrix", "@ada:example.org"),
        Person("matrix", "@ada-example.org"),
        Person("local", "x" * 500),
        Person("local", "\ud800"),
        Person("local", "owner"),
    ]
    names = [person.folder_name for person in people]
    assert len({name.casefold() for name in names}) == len(people)
    assert all(re.fullmatch(r"[a-z0-9][a-z0-9-]{0,60}", name) for name in names)
