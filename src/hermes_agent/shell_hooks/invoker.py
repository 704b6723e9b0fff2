"""Calls shell hooks at the hooks of a turn, after those of plugins.

| event            | hook of plugins                                        |
| ---------------- | ------------------------------------------------------ |
| SessionStart     | before the first prompt that this agent gets           |
| UserPromptSubmit | before a prompt is stored                              |
| PreToolUse       | pre_tool_call                                          |
| PostToolUse      | transform_tool_result, i.e. only for calls that ran    |
| Stop             | pre_turn_end: the model has given its final answer     |
| PreCompact       | pre_compaction                                         |

SessionEnd is delivered with the boundaries of sessions (hermes_conversation/shell_hooks.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from hermes_agent.project.files import repository_root
from hermes_agent.shell_hooks.config import DECIDING_EVENTS
from hermes_agent.shell_hooks.events import hook_tool, tool_fields
from hermes_agent.shell_hooks.failures import record_failure
from hermes_agent.shell_hooks.runner import run_hook
from hermes_core.json_values import parse_object

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from hermes_agent.shell_hooks.config import ShellHook, ShellHooks
    from hermes_agent.shell_hooks.runner import HookResult
    from hermes_agent.shell_hooks.transcripts import Transcripts
    from hermes_agent.turn_hooks import HookInvoker
    from hermes_core.json_values import JsonObject


class HookAnswer(NamedTuple):
    """The decision of all commands for an event: the first reason to block, and all context."""

    block: str = ""
    context: str = ""


class _ToolFacts(NamedTuple):
    """The facts of a hook about a tool call."""

    session_id: str
    tool: str
    arguments: JsonObject
    call_id: str
    result: str

    @classmethod
    def of(
        cls,
        session_id: str,
        tool_name: str,
        args: JsonObject,
        tool_call_id: str,
        result: str = "",
        **_more: Any,
    ) -> _ToolFacts:
        """Take the facts that are needed."""
        return cls(session_id, tool_name, args, tool_call_id, result)


class HookRunner:
    """Runs the commands for an event, one after the other."""

    def __init__(
        self,
        hooks: ShellHooks,
        cwd: Path,
        environment: Mapping[str, str],
        transcripts: Transcripts,
    ) -> None:
        self.hooks = hooks
        self.notices: list[str] = []  # for the user, about failures that blocked nothing
        self._cwd = cwd
        self._transcripts = transcripts
        root = str(repository_root(cwd))
        self._environment = {
            **environment,
            "HERMES_PROJECT_DIR": root,
            "CLAUDE_PROJECT_DIR": root,
        }

    def run(
        self, event: str, session_id: str, fields: JsonObject, *names: str, answer: str = ""
    ) -> HookAnswer:
        """Run the commands that match one of *names*; a block ends it.

        The transcript ends with *answer*, which is not stored yet.
        """
        found = self.hooks.for_event(event, *names)
        if not found:
            return HookAnswer()
        document: JsonObject = {
            "session_id": session_id,
            "transcript_path": self._transcripts.write(session_id, answer),
            "cwd": str(self._cwd),
            "hook_event_name": event,
            **fields,
        }
        contexts: list[str] = []
        for hook in found:
            result = run_hook(hook, document, self._cwd, self._environment)
            if result.context:
                contexts.append(result.context)
            block = result.block or self._failed(hook, result)
            if block:
                return HookAnswer(block, "\n\n".join(contexts))
        return HookAnswer("", "\n\n".join(contexts))

    def _failed(self, hook: ShellHook, result: HookResult) -> str:
        """Record a failure; the reason to block if the hook had to decide, else a notice."""
        if not result.failure:
            return ""
        record_failure(hook, result.failure)
        if hook.event in DECIDING_EVENTS and (self.hooks.is_strict or not result.has_answered):
            return f"the hook `{hook.command}`, which must decide this, failed: {result.failure}"
        self.notices.append(f"The hook `{hook.command}` ({hook.event}) failed: {result.failure}")
        return ""

    def close(self) -> None:
        """Remove the transcripts."""
        self._transcripts.close()


class ShellHookInvoker:
    """A HookInvoker: plugins first, then shell commands."""

    def __init__(self, runner: HookRunner, plugins: HookInvoker) -> None:
        self._runner = runner
        self._plugins = plugins
        self._started: set[str] = set()  # sessions whose prompts came through `submit`
        self._stopped: set[str] = set()  # sessions whose Stop hooks ran before the end of the turn
        self._context: dict[str, str] = {}  # for the next request of a session

    def submit(self, session_id: str, text: str, *, is_new: bool) -> str:
        """Run the hooks before a prompt; the reason to refuse it, or an empty text."""
        contexts = []
        if session_id not in self._started:
            self._started.add(session_id)
            source = "startup" if is_new else "resume"
            started = self._runner.run("SessionStart", session_id, {"source": source}, source)
            contexts.append(started.context)
        answer = self._runner.run("UserPromptSubmit", session_id, {"prompt": text})
        self._context[session_id] = "\n\n".join(filter(None, [*contexts, answer.context]))
        return answer.block

    def pop_notices(self) -> list[str]:
        """Remove and return what the user is to know about failed commands."""
        notices, self._runner.notices = self._runner.notices, []
        return notices

    def __call__(self, name: str, **facts: Any) -> list[Any]:
        """Call the plugins and the commands for a hook; their results."""
        results = self._plugins(name, **facts)
        if name == "pre_llm_call":
            return [*results, *self._before_turn(**facts)]
        if name == "pre_tool_call":
            return [*results, *self._before_tool(_ToolFacts.of(**facts))]
        if name == "transform_tool_result":
            return self._after_tool(_ToolFacts.of(**facts), results)
        if name == "pre_turn_end":
            return [*results, *self._before_end(**facts)]
        if name == "on_session_end":
            self._after_turn(**facts)
        elif name == "pre_compaction":
            self._before_compaction(**facts)
        return results

    def _before_turn(self, session_id: str, **_facts: Any) -> list[str]:
        context = self._context.pop(session_id, "")
        return [context] if context else []

    def _before_end(
        self, session_id: str, response_text: str, continuations: int, **_facts: Any
    ) -> list[Any]:
        if session_id not in self._started:
            return []
        self._stopped.add(session_id)
        answer = self._stop(session_id, response_text, is_active=continuations > 0)
        return [{"action": "continue", "message": answer.block}] if answer.block else []

    def _stop(self, session_id: str, text: str, *, is_active: bool) -> HookAnswer:
        fields: JsonObject = {"stop_hook_active": is_active, "last_assistant_message": text}
        return self._runner.run("Stop", session_id, fields, answer=text)

    def _after_turn(self, session_id: str, *, interrupted: bool, **_facts: Any) -> None:
        """A turn has ended without a final answer, e.g. at a limit: it cannot be continued."""
        is_done = session_id in self._stopped
        self._stopped.discard(session_id)
        if session_id in self._started and not is_done and not interrupted:
            self._stop(session_id, "", is_active=False)

    def close(self) -> None:
        """Remove what was written for the commands."""
        self._runner.close()

    def _before_compaction(
        self, session_id: str, trigger: str, focus: str = "", **_facts: Any
    ) -> None:
        fields: JsonObject = {"trigger": trigger, "custom_instructions": focus}
        self._runner.run("PreCompact", session_id, fields, trigger)

    def _before_tool(self, call: _ToolFacts) -> list[Any]:
        if not self._runner.hooks.has("PreToolUse"):
            return []
        answer = self._run_for_tool("PreToolUse", call, {})
        return [{"action": "block", "message": answer.block}] if answer.block else []

    def _after_tool(self, call: _ToolFacts, results: list[Any]) -> list[Any]:
        if not self._runner.hooks.has("PostToolUse"):
            return results
        changed = (text for text in results if isinstance(text, str))
        result = next(changed, call.result)
        answer = self._run_for_tool(
            "PostToolUse", call, {"tool_response": parse_object(result) or result}
        )
        added = "\n\n".join(filter(None, [answer.block, answer.context]))
        return [f"{result}\n\n[Hook] {added}"] if added else results

    def _run_for_tool(self, event: str, call: _ToolFacts, more: JsonObject) -> HookAnswer:
        name = hook_tool(call.tool, call.arguments).name
        fields = tool_fields(call.tool, call.arguments, call.call_id)
        return self._runner.run(event, call.session_id, {**fields, **more}, name, call.tool)
