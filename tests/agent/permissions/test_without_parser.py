"""Where the shell parser has no wheel (musl on arm64), no command runs unseen."""

from __future__ import annotations

import sys

import pytest

from hermes_agent.permissions.approvals import MODES
from hermes_cli.commands.system.doctor import check_command_analysis


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("command", ["ls", "git status", "rm -rf build", "rm -rf /", "X=rm; $X ~"])
def test_without_a_parser_no_command_is_allowed_unseen(verdict, monkeypatch, command, mode):
    monkeypatch.setitem(sys.modules, "tree_sitter", None)
    assert verdict(command, mode) in {"ask", "refuse"}


def test_doctor_reports_a_missing_parser(monkeypatch):
    assert check_command_analysis() == []
    monkeypatch.setitem(sys.modules, "tree_sitter", None)
    (result,) = check_command_analysis()
    assert (result.status, "every command needs approval" in result.detail) == ("warning", True)
