"""Nobody to ask: what is said in the place of a person who is not there."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hermes_agent.tools.base import ApprovalRequest


class NobodyToAsk:
    """Nobody is there: nothing risky is allowed, no question is answered."""

    def approve(self, request: ApprovalRequest) -> str:
        """No."""
        del request
        return "deny"

    def clarify(self, question: str, choices: list[str]) -> str:
        """No answer."""
        del question, choices
        return ""
