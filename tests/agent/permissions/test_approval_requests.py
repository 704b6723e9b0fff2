"""What a person is shown before an approval, and what each answer covers."""

from __future__ import annotations

import pytest

from hermes_agent.permissions.approvals import ApprovalGuard
from hermes_agent.permissions.grants import check_rule
from hermes_agent.permissions.verdicts import Allow, NeedsApproval, Refuse
from hermes_agent.tools.base import ToolContext
from hermes_agent.tools.prompter import ApprovalAnswer, parse_answer
from hermes_agent.turn_control import Cancel
from hermes_agent.turn_hooks import no_plugins
from hermes_core.errors import UsageError


def request_for(approvals, caller, command):
    verdict = approvals.command(command, caller)
    assert isinstance(verdict, NeedsApproval)
    return verdict.request


def decide(approvals, caller, tool, **arguments):
    context = ToolContext(
        caller.session_id, caller.turn_id, "c1", caller.workspace, Cancel(), None, print
    )
    return approvals.decide(tool, arguments, context)


@pytest.mark.parametrize(
    ("command", "risky"),
    [
        ("rm -rf build", (0,)),
        ("echo 1\necho 2\nrm -rf build\necho 3", (2,)),
        ("\n".join(["echo x >> log.txt"] * 60 + ["rm -rf build"] + ["echo y"] * 20), (60,)),
        ("echo a\nbash -c 'rm -rf build'\necho b", (1,)),
        ("for f in *; do\n  rm -rf $f\ndone", (1,)),
        ("make\necho x > /opt/a\nls", (1,)),
        ("cat <<'EOF' | sh\nls\nrm -rf build\nEOF", (0,)),
    ],
)
def test_risky_lines_are_marked(approvals, caller, command, risky):
    assert request_for(approvals, caller, command).risky_lines == risky


def test_a_request_names_the_folder_and_the_rule(approvals, caller):
    request = request_for(approvals, caller, "rm -rf build")
    assert request.folder == str(caller.workspace)
    assert request.rules == ("run: rm -rf build",)
    assert request_for(approvals, caller, "curl https://a.example").rules == ("network",)


def test_a_file_change_is_shown_as_a_complete_diff(approvals, caller, tmp_path):
    outside = tmp_path / "elsewhere"
    outside.mkdir()
    file = outside / "notes.txt"
    file.write_text("".join(f"line {n}\n" for n in range(300)))
    new = "".join(f"row {n}\n" for n in range(300))
    written = decide(approvals, caller, "write_file", path=str(file), content=new)
    assert isinstance(written, NeedsApproval)
    diff = written.request.diff.splitlines()
    assert [line for line in diff if line.startswith("+row")][-1] == "+row 299"
    assert len([line for line in diff if line.startswith("-line")]) == 300
    patched = decide(
        approvals, caller, "patch", path=str(file), old_string="line 7\n", new_string="seven\n"
    )
    assert "+seven" in patched.request.diff.splitlines()


def test_a_hidden_file_is_not_shown_in_a_diff(approvals, caller, hermes_home):
    (hermes_home / ".env").write_text("KEY=secret\n")
    path = str(hermes_home / ".env")
    verdict = decide(approvals, caller, "patch", path=path, old_string="K", new_string="x")
    assert isinstance(verdict, Refuse)


def test_a_reason_of_a_denial_reaches_the_model(approvals, caller):
    class Person:
        def approve(self, request):
            del request
            return ApprovalAnswer("deny", reason="use make clean instead")

    context = ToolContext(
        caller.session_id, caller.turn_id, "c1", caller.workspace, Cancel(), Person(), print
    )
    guard = ApprovalGuard(approvals, no_plugins, "test")
    answer = guard("terminal", {"command": "rm -rf build"}, context)
    assert "use make clean instead" in answer
    assert "use make clean instead" in guard("terminal", {"command": "rm -rf build"}, context)


def test_an_edited_rule_covers_what_it_names(approvals, caller):
    request = request_for(approvals, caller, "git push origin main")
    approvals.settle(request, parse_answer("session run: git push origin *"))
    assert isinstance(approvals.command("git push origin main", caller), Allow)
    assert isinstance(approvals.command("git push origin next", caller), Allow)
    assert isinstance(approvals.command("git push other main", caller), NeedsApproval)
    assert isinstance(approvals.command("git push origin x; rm -rf y", caller), NeedsApproval)


def test_a_rule_for_something_else_allows_the_call_once(approvals, caller):
    request = request_for(approvals, caller, "rm -rf build")
    approvals.settle(request, parse_answer("always run: rm -rf dist"))
    assert isinstance(approvals.command("rm -rf build", caller), Allow)
    assert isinstance(approvals.command("rm -rf build", caller), NeedsApproval)
    assert isinstance(approvals.command("rm -rf dist", caller), Allow)


@pytest.mark.parametrize("rule", ["", "run:", "run: *", "rm-recursive", "allow everything", "*"])
def test_a_rule_that_says_nothing_or_everything_is_refused(rule):
    with pytest.raises(UsageError):
        check_rule(rule)


@pytest.mark.parametrize("rule", ["network", "run: git push", "run: make *", "mcp:files.write"])
def test_a_valid_rule_is_accepted(rule):
    assert check_rule(f" {rule} ") == rule
