"""Approvals around tool calls: one question at a time, and plugins hear of both sides."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from hermes_agent.permissions.verdicts import Ask, Refuse

if TYPE_CHECKING:
    from hermes_agent.permissions.approvals import Approvals
    from hermes_agent.tools.base import ApprovalRequest, ToolContext
    from hermes_agent.turn_hooks import Announces


class Guarding:
    """Lets a call pass, asks about it, or refuses it."""

    def __init__(self, approvals: Approvals, announce: Announces, surface: str) -> None:
        self._approvals = approvals
        self._announce = announce
        self._surface = surface
        self._asking = threading.Lock()  # a person answers one question at a time

    def __call__(self, tool: str, arguments: dict[str, Any], context: ToolContext) -> str | None:
        """Why *tool* may not be called like this; None when it may."""
        with self._asking:  # an answer for once is for the call that asked
            verdict = self._approvals.decide(tool, arguments, context)
            if isinstance(verdict, Ask):
                self._approvals.settle(verdict.request, self._ask(verdict.request, context))
                verdict = self._approvals.decide(tool, arguments, context)
        if isinstance(verdict, Refuse):
            return verdict.reason
        return "It was not approved." if isinstance(verdict, Ask) else None

    def _ask(self, request: ApprovalRequest, context: ToolContext) -> str:
        facts = {
            "command": request.command,
            "description": request.description,
            "pattern_key": request.pattern_keys[0] if request.pattern_keys else "",
            "pattern_keys": list(request.pattern_keys),
            "session_key": request.session_id,
            "surface": self._surface,
        }
        self._announce("pre_approval_request", **facts)
        choice = "deny" if context.cancel.is_requested else context.asks.approve(request)
        self._announce("post_approval_response", **facts, choice=choice)
        return choice
