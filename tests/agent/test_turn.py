"""A turn: what is shown is stored, whatever happens to the model, the tools or the user."""

from __future__ import annotations

import functools
import json
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from agent.conftest import of_kind
from hermes_agent import events
from hermes_agent.agent import renewing_lease
from hermes_agent.events import TextDelta, ToolFinished, TurnEnd, TurnFinished
from hermes_agent.tools.base import Tool, always_reads, failure, success
from hermes_agent.turn import OUT_OF_REQUESTS
from hermes_core.errors import LeaseLostError, LeaseTakenError
from support.waiting import PATIENCE_SECONDS, act_when, wait_until

if TYPE_CHECKING:
    from agent.conftest import Scene

ANY = {"type": "object"}


def tool(name: str, run: Any, **options: Any) -> Tool:
    return Tool(name, f"Does {name}.", ANY, run, **options)


def echo() -> Tool:
    return tool("echo", lambda arguments, _context: success(output=arguments.get("text", "")))


HELLO = "steps: [{say: Hello there friend.}]"
CALL = "{name: echo, arguments: {text: hi}}"


def test_an_answer_is_stored_unchanged(scene: Scene) -> None:
    agent = scene.agent(HELLO)
    turn = list(agent.turn("hi"))
    assert "".join(event.text for event in of_kind(turn, TextDelta)) == "Hello there friend."
    last = TurnFinished(TurnEnd.COMPLETE, "Hello there friend.", turn[-1].usage)
    assert turn[-1] == last._replace(finish_reason="stop")
    assert scene.messages(agent) == [("user", "hi"), ("assistant", "Hello there friend.")]


def test_the_prompt_is_stored_before_the_model_is_called(scene: Scene) -> None:
    agent = scene.agent(HELLO)
    for event in agent.turn("hi"):
        if isinstance(event, events.TurnStarted):
            break
    assert scene.messages(agent) == [("user", "hi")]
    assert scene.servers[0].requests == []


def test_no_row_is_created_before_the_first_prompt(scene: Scene) -> None:
    agent = scene.agent(HELLO)
    assert scene.db.get_session(agent.session_id) is None
    list(agent.turn("hi"))
    assert scene.db.get_session(agent.session_id) is not None


def test_tools_run_and_their_results_are_returned_to_the_model(scene: Scene) -> None:
    agent = scene.agent(f"steps: [{{say: Look., calls: [{CALL}]}}, {{say: Done.}}]", echo())
    turn = list(agent.turn("go"))
    assert [event.result for event in of_kind(turn, ToolFinished)] == [success(output="hi")]
    roles = [role for role, _ in scene.messages(agent)]
    assert roles == ["user", "assistant", "tool", "assistant"]
    sent = scene.servers[0].requests[1]["messages"]
    assert [item["role"] for item in sent] == ["system", "user", "assistant", "tool"]
    assert sent[3]["tool_call_id"] == sent[2]["tool_calls"][0]["id"]


def test_adjacent_calls_that_only_read_run_together(scene: Scene) -> None:
    meeting = threading.Barrier(2, timeout=PATIENCE_SECONDS)

    def meet(_arguments: Any, _context: Any) -> str:
        meeting.wait()  # alone, it would wait in vain
        return success()

    steps = "steps: [{calls: [{name: meet}, {name: meet}]}, {say: Both.}]"
    agent = scene.agent(steps, tool("meet", meet, only_reads=always_reads))
    assert len(of_kind(list(agent.turn("go")), ToolFinished)) == 2


def test_results_of_calls_that_run_together_are_stored_in_the_order_of_the_answer(
    scene: Scene,
) -> None:
    is_second_done = threading.Event()

    def first(_arguments: Any, _context: Any) -> str:
        is_second_done.wait(PATIENCE_SECONDS)
        return success(output="first")

    def second(_arguments: Any, _context: Any) -> str:
        is_second_done.set()
        return success(output="second")

    steps = "steps: [{calls: [{name: first}, {name: second}]}, {say: Both.}]"
    tools = [tool("first", first, only_reads=always_reads)]
    tools += [tool("second", second, only_reads=always_reads)]
    agent = scene.agent(steps, *tools)
    list(agent.turn("go"))
    assert [text for role, text in scene.messages(agent) if role == "tool"] == [
        success(output="first"),
        success(output="second"),
    ]


def test_a_call_between_two_that_only_read_runs_alone_and_in_its_place(scene: Scene) -> None:
    log: list[str] = []

    def runs(name: str) -> Any:
        def run(_arguments: Any, _context: Any) -> str:
            log.append(f"{name} starts")
            time.sleep(0.01)
            log.append(f"{name} ends")
            return success()

        return run

    steps = "steps: [{calls: [{name: read}, {name: change}, {name: read}]}, {say: Done.}]"
    reading = tool("read", runs("read"), only_reads=always_reads)
    list(scene.agent(steps, reading, tool("change", runs("change"))).turn("go"))
    assert log == [f"{name} {what}" for name in ("read", "change", "read")
                   for what in ("starts", "ends")]  # fmt: skip


@pytest.mark.parametrize(
    ("call", "text"),
    [
        ("{name: broken}", "KeyError"),
        ("{name: missing}", "unknown tool"),
        ("{name: echo, arguments: '{{'}", "not a valid JSON object"),
    ],
)
def test_a_tools_failure_is_an_answer_to_the_model(scene: Scene, call: str, text: str) -> None:
    def fail(_arguments: Any, _context: Any) -> str:
        raise KeyError("no")

    steps = f"steps: [{{calls: [{call}]}}, {{say: I see.}}]"
    agent = scene.agent(steps, echo(), tool("broken", fail))
    turn = list(agent.turn("go"))
    assert text in of_kind(turn, ToolFinished)[0].result
    assert turn[-1].end is TurnEnd.COMPLETE


def test_the_retry_after_of_a_provider_is_honoured(scene: Scene) -> None:
    agent = scene.agent("steps: [{fail: {status: 429, retry_after: 0.01}}, {say: Now.}]")
    turn = list(agent.turn("hi"))
    assert len(of_kind(turn, events.Retrying)) == 1
    assert turn[-1].text == "Now."


@pytest.mark.parametrize(
    ("fail", "text"),
    [
        ("{status: 401}", "hermes setup"),
        ("{status: 404, message: no such model}", "hermes models list"),
        ("{status: 400, message: maximum context length is 4096}", "/compress"),
        ("{status: 402}", "no credit"),
    ],
)
def test_a_failure_has_a_hint(scene: Scene, fail: str, text: str) -> None:
    agent = scene.agent(f"steps: [{{fail: {fail}}}]")
    turn = list(agent.turn("hi"))
    assert turn[-1].end is TurnEnd.FAILED
    assert text in turn[-1].error
    assert scene.messages(agent) == [("user", "hi")]


def test_a_server_that_is_not_there_is_named(scene: Scene) -> None:
    from hermes_agent.providers.openai_compatible import OpenAICompatible  # noqa: PLC0415

    agent = scene.with_providers([OpenAICompatible("m", "http://127.0.0.1:9/v1")])
    turn = list(agent.turn("hi"))
    assert "http://127.0.0.1:9/v1" in turn[-1].error


def test_another_model_steps_in(scene: Scene) -> None:
    from hermes_agent.providers.openai_compatible import OpenAICompatible  # noqa: PLC0415

    first = OpenAICompatible("one", scene.server("steps: [{fail: {status: 401}}]").base_url)
    second = OpenAICompatible("two", scene.server(HELLO).base_url)
    agent = scene.with_providers([first, second])
    turn = list(agent.turn("hi"))
    assert turn[-1].text == "Hello there friend."
    assert of_kind(turn, events.Retrying)[0].model == "two"
    assert agent.model == "two"


def test_text_streamed_before_a_lost_connection_is_kept(scene: Scene) -> None:
    agent = scene.agent(f"steps: [{', '.join(['{say: This much and, cut: true}'] * 4)}]")
    turn = list(agent.turn("hi"))
    assert turn[-1].end is TurnEnd.FAILED
    last = scene.rows(agent)[-1]
    assert (last["content"], last["finish_reason"]) == ("This much and", "error")


def test_an_interrupt_keeps_the_streamed_text(scene: Scene) -> None:
    agent = scene.agent("steps: [{say: one two three four five six seven, pause: 0.1}]")
    output = ""
    for event in agent.turn("count"):
        if isinstance(event, TextDelta):
            output += event.text
            if "three" in output:
                agent.interrupt()
        if isinstance(event, TurnFinished):
            assert event.end is TurnEnd.INTERRUPTED
    last = scene.rows(agent)[-1]
    assert last["content"] == output
    assert last["finish_reason"] == "interrupted"
    assert "seven" not in output


def test_an_interrupt_reaches_a_silent_model(scene: Scene) -> None:
    agent = scene.agent("steps: [{say: late, hang: 600}]")
    act_when(lambda: scene.servers[0].requests, agent.interrupt)
    turn = list(agent.turn("hi"))
    assert turn[-1].end is TurnEnd.INTERRUPTED


def test_an_interrupt_stops_a_running_tool(scene: Scene) -> None:
    def wait(_arguments: Any, context: Any) -> str:
        return success(output="stopped" if context.cancel.wait(PATIENCE_SECONDS) else "waited")

    agent = scene.agent("steps: [{calls: [{name: wait}]}, {say: never}]", tool("wait", wait))
    for event in agent.turn("go"):
        if isinstance(event, events.ToolStarted):
            threading.Timer(0.1, agent.interrupt).start()
        if isinstance(event, TurnFinished):
            assert event.end is TurnEnd.INTERRUPTED
    assert "stopped" in scene.rows(agent)[-1]["content"]
    assert len(scene.servers[0].requests) == 1


def test_calls_left_open_by_a_crash_are_closed_when_the_conversation_continues(
    scene: Scene,
) -> None:
    agent = scene.agent(HELLO, echo())
    agent.conversation_store.begin()
    scene.db.append_message(agent.session_id, "user", "go")
    calls = [{"id": "c9", "type": "function", "function": {"name": "echo", "arguments": "{}"}}]
    scene.db.append_message(agent.session_id, "assistant", "", tool_calls=calls)
    list(agent.turn("and?"))
    closed = scene.rows(agent)[2]
    assert (closed["role"], closed["tool_call_id"]) == ("tool", "c9")
    assert "was interrupted" in closed["content"]
    roles = [request["role"] for request in scene.servers[0].requests[0]["messages"]]
    assert roles == ["system", "user", "assistant", "tool", "assistant", "user"]


def test_a_resumed_conversation_sends_its_rendered_history(scene: Scene) -> None:
    first = scene.agent(f"steps: [{{say: Look., calls: [{CALL}]}}, {{say: Done.}}]", echo())
    list(first.turn("go"))
    second = scene.agent(HELLO, echo(), session_id=first.session_id)
    list(second.turn("and now?"))
    sent = scene.servers[1].requests[0]["messages"]
    assert ("tool", '{"output": "hi", "error": null}') in scene.messages(first)
    contents = [item["content"] for item in sent]
    assert contents == ["Be brief.", "go", "Look.", "hi", "Done.", "and now?"]
    before = scene.servers[0].requests[1]["messages"]
    assert sent[: len(before)] == before  # byte for byte, for the provider's cache


def test_steering_is_read_after_the_next_tool_result(scene: Scene) -> None:
    agent = scene.agent(f"steps: [{{calls: [{CALL}]}}, {{say: Fine.}}]", echo())
    for event in agent.turn("go"):
        if isinstance(event, events.ToolStarted):
            agent.steer("but quickly")
    sent = scene.servers[0].requests[1]["messages"]
    assert sent[-1] == {"role": "user", "content": "but quickly"}
    assert ("user", "but quickly") in scene.messages(agent)


def test_messages_read_together_as_steering_are_each_known_as_stored(scene: Scene) -> None:
    agent = scene.agent(f"steps: [{{calls: [{CALL}]}}, {{say: Fine.}}]", echo())
    uids = ("message-1", "message-2", "message-3")
    for event in agent.turn("go"):
        if isinstance(event, events.ToolStarted):
            for uid in uids:
                agent.steer(f"text of {uid}", uid)
    row_ids = {scene.db.messages.message_of(agent.session_id, uid) for uid in uids}
    assert len(row_ids) == 1
    assert None not in row_ids


def test_a_message_that_is_offered_again_is_read_once(scene: Scene) -> None:
    steps = f"steps: [{{calls: [{CALL}]}}, {{calls: [{CALL}]}}, {{say: Fine.}}]"
    agent = scene.agent(steps, echo())
    for event in agent.turn("go"):
        if isinstance(event, events.ToolStarted):  # twice: the second time it has been read
            agent.steer("but quickly", "message-1")
            agent.steer("but quickly", "message-1")
    texts = [text for role, text in scene.messages(agent) if role == "user"]
    assert texts == ["go", "but quickly"]


def test_only_one_turn_of_a_conversation_runs_at_a_time(scene: Scene) -> None:
    agent = scene.agent(HELLO)
    other = scene.agent(HELLO, session_id=agent.session_id)
    turn = agent.turn("hi")
    next(turn)
    with pytest.raises(LeaseTakenError):
        list(other.turn("me too"))
    list(turn)
    assert list(other.turn("now"))[-1].end is TurnEnd.COMPLETE


def test_a_long_turn_keeps_its_lease(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "hermes_agent.agent.renewing_lease", functools.partial(renewing_lease, seconds=0.05)
    )
    renewed: list[float] = []
    renew = scene.db.leases.renew
    monkeypatch.setattr(
        scene.db.leases, "renew", lambda lease: (renewed.append(time.time()), renew(lease))
    )

    def slow(_arguments: Any, _context: Any) -> str:
        wait_until(lambda: len(renewed) >= 3)
        return success()

    agent = scene.agent("steps: [{calls: [{name: slow}]}, {say: Done.}]", tool("slow", slow))
    assert list(agent.turn("go"))[-1].end is TurnEnd.COMPLETE
    assert len(renewed) >= 3  # an assertion in a tool is only a result for the model


def test_a_turn_that_another_process_took_over_stops(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "hermes_agent.agent.renewing_lease", functools.partial(renewing_lease, seconds=0.05)
    )

    def lost(_lease: Any) -> None:
        raise LeaseLostError("taken over")

    monkeypatch.setattr(scene.db.leases, "renew", lost)
    agent = scene.agent("steps: [{say: one two three four five six, pause: 0.2}]")
    assert list(agent.turn("count"))[-1].end is TurnEnd.INTERRUPTED


def test_tokens_are_counted_also_of_answers_that_were_cut(scene: Scene) -> None:
    agent = scene.agent(f"steps: [{{say: Look., calls: [{CALL}]}}, {{say: Done.}}]", echo())
    finished = list(agent.turn("go"))[-1]
    row = scene.db.get_session(agent.session_id)
    assert row is not None
    assert row["input_tokens"] == finished.usage.input > 0
    assert row["output_tokens"] == finished.usage.output > 0
    assert row["api_call_count"] == 2


def test_hooks_are_called_in_order_and_once(scene: Scene) -> None:
    agent = scene.agent(f"steps: [{{calls: [{CALL}]}}, {{say: Done.}}]", echo())
    list(agent.turn("go"))
    assert scene.hook_names() == [
        "on_session_start",
        "pre_llm_call",
        "pre_api_request",
        "post_api_request",
        "pre_tool_call",
        "post_tool_call",
        "transform_tool_result",
        "pre_api_request",
        "transform_llm_output",
        "pre_turn_end",
        "post_api_request",
        "post_llm_call",
        "on_session_end",
    ]
    ended = scene.hook_calls[-1][1]
    assert (ended["completed"], ended["interrupted"]) == (True, False)


@pytest.mark.parametrize("steps", ["[{say: a b c d e f g, pause: 0.1}]", "[{fail: {status: 401}}]"])
def test_an_end_is_never_completed_and_interrupted(scene: Scene, steps: str) -> None:
    agent = scene.agent(f"steps: {steps}")
    for event in agent.turn("hi"):
        if isinstance(event, TextDelta):
            agent.interrupt()
    ends = [fields for name, fields in scene.hook_calls if name == "on_session_end"]
    assert len(ends) == 1
    assert not ends[0]["completed"]


def test_a_plugin_can_add_to_a_turn_without_a_trace_in_the_history(scene: Scene) -> None:
    scene.answers["pre_llm_call"] = lambda **_facts: {"context": "It is raining."}
    agent = scene.agent(HELLO)
    list(agent.turn("hi"))
    assert scene.servers[0].requests[0]["messages"][-1]["content"] == "hi\n\nIt is raining."
    assert scene.messages(agent)[0] == ("user", "hi")


def test_a_plugin_can_block_a_tool_and_change_a_result(scene: Scene) -> None:
    scene.answers["pre_tool_call"] = lambda **fields: (
        {"action": "block", "message": "not today"} if fields["args"]["text"] == "no" else None
    )
    scene.answers["transform_tool_result"] = lambda **_facts: "changed"
    calls = "{name: echo, arguments: {text: no}}, {name: echo, arguments: {text: yes}}"
    agent = scene.agent(f"steps: [{{calls: [{calls}]}}, {{say: Done.}}]", echo())
    results = {event.call.arguments: event.result for event in agent.turn("go")
               if isinstance(event, ToolFinished)}  # fmt: skip
    assert "not today" in results['{"text": "no"}']
    assert results['{"text": "yes"}'] == "changed"


def test_every_call_passes_the_guard(scene: Scene) -> None:
    def guard(tool: str, arguments: dict[str, Any], _context: Any) -> str | None:
        return f"{tool} may not" if arguments.get("text") == "no" else None

    calls = "{name: echo, arguments: {text: no}}, {name: echo, arguments: {text: yes}}"
    steps = f"steps: [{{calls: [{calls}]}}, {{say: Done.}}]"
    agent = scene.agent(steps, echo(), guard=guard)
    matches = [event.result for event in agent.turn("go") if isinstance(event, ToolFinished)]
    assert sorted(matches) == sorted([failure("echo may not"), success(output="yes")])


def test_run_conversation_returns_the_outcome_of_a_turn(scene: Scene) -> None:
    output: list[str] = []
    agent = scene.agent(HELLO)
    result = agent.run_conversation("hi", stream_callback=output.append)
    assert result["final_response"] == "".join(output) == "Hello there friend."
    assert result["completed"]
    assert not result["interrupted"]
    assert result["session_id"] == agent.session_id
    json.dumps(result["messages"])


def test_the_last_request_of_a_turn_forbids_tools_and_says_so(scene: Scene) -> None:
    agent = scene.agent(
        f"steps: [{{calls: [{CALL}]}}, {{calls: [{CALL}]}}, {{say: Done.}}]", echo(), max_steps=3
    )
    last = list(agent.turn("hi"))[-1]
    assert last.end is TurnEnd.TOO_LONG
    assert last.text == "Done."
    assert "limit of 3 steps" in last.notice
    before, last = scene.servers[0].requests[-2:]
    assert before["tools"] == last["tools"]  # their beginnings are the same
    assert "tool_choice" not in before
    assert last["tool_choice"] == "none"
    assert last["messages"][-1]["content"] == OUT_OF_REQUESTS
    assert before["messages"][-1]["content"] != OUT_OF_REQUESTS
