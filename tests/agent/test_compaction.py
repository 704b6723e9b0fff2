"""A long conversation is compacted for the model; the stored history stays complete."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_agent.context.compaction import SUMMARY_HEADING, CompactionResult, is_due, split
from hermes_agent.events import Failed, FailureKind, Notice, TurnFinished
from hermes_agent.providers.openai_compatible import OpenAICompatible
from hermes_agent.providers.scripted import ModelScript, ScriptStep
from hermes_agent.tools.base import Tool
from hermes_agent.tools.todo import todo_tool
from support.scripted_server import ScriptServer
from support.waiting import act_when

if TYPE_CHECKING:
    from agent.conftest import Scene
    from hermes_core.json_values import JsonObject

LONG = "x" * 400


def test_the_context_shrinks_and_the_history_does_not(scene: Scene) -> None:
    steps = "steps: [{say: a1}, {say: a2}, {say: a3}, {say: They want tea.}, {say: Tea it is.}]"
    provider = OpenAICompatible("m", scene.server(steps).base_url, window=700)
    agent = scene.with_providers([provider])
    for number in range(3):
        list(agent.turn(f"{number} {LONG}"))
    result = agent.compress("tea")
    assert isinstance(result, CompactionResult)
    assert result.summary == "They want tea."
    list(agent.turn("and now?"))
    sent = [request["content"] for request in scene.servers[0].requests[-1]["messages"]]
    assert sent[:2] == ["Be brief.", f"{SUMMARY_HEADING}They want tea.\n\n2 {LONG}"]
    assert sent[-1] == "and now?"
    assert f"0 {LONG}" not in sent
    everything = scene.db.get_messages(agent.session_id, include_inactive=True)
    assert f"0 {LONG}" in [row["content"] for row in everything]
    assert "tea" in scene.servers[0].requests[3]["messages"][-1]["content"]


def test_a_conversation_that_fills_the_window_is_compacted_automatically(scene: Scene) -> None:
    steps = f"steps: [{{say: {LONG}}}, {{say: {LONG}}}, {{say: {LONG}}}, {{say: Summed up.}}]"
    provider = OpenAICompatible("m", scene.server(steps).base_url, window=700)
    agent = scene.with_providers([provider])
    notices = [
        event.text
        for number in range(3)
        for event in agent.turn(f"{number} {LONG}")
        if isinstance(event, Notice)
    ]
    assert len(notices) == 1
    assert "history keeps them all" in notices[0]


def test_without_a_summary_nothing_is_changed(scene: Scene) -> None:
    steps = "steps: [{say: a1}, {say: a2}, {say: a3}, {fail: {status: 401}}]"
    provider = OpenAICompatible("m", scene.server(steps).base_url, window=700)
    agent = scene.with_providers([provider])
    for number in range(3):
        list(agent.turn(f"{number} {LONG}"))
    before = scene.messages(agent)
    assert isinstance(agent.compress(), Failed)
    assert scene.messages(agent) == before


def test_after_a_turn_that_was_stopped_there_can_be_a_summary(scene: Scene) -> None:
    steps = "steps: [{say: a1}, {say: a2}, {say: a3}, {say: Summed up.}, {say: no, hang: 600}]"
    provider = OpenAICompatible("m", scene.server(steps).base_url, window=700)
    agent = scene.with_providers([provider])
    for number in range(3):
        list(agent.turn(f"{number} {LONG}"))
    agent.interrupt()
    result = agent.compress()
    assert isinstance(result, CompactionResult)
    assert result.summary == "Summed up."


def test_making_a_summary_can_be_stopped(scene: Scene) -> None:
    steps = "steps: [{say: a1}, {say: a2}, {say: a3}, {say: no, hang: 600}]"
    server = scene.server(steps)
    provider = OpenAICompatible("m", server.base_url, window=700)
    agent = scene.with_providers([provider])
    for number in range(3):
        list(agent.turn(f"{number} {LONG}"))
    act_when(lambda: len(server.requests) == 4, agent.interrupt)
    result = agent.compress()
    assert isinstance(result, Failed)
    assert result.kind is FailureKind.INTERRUPTED


def test_only_complete_exchanges_are_kept() -> None:
    messages = [
        {"role": role, "content": LONG}
        for _ in range(6)
        for role in ("user", "assistant", "tool", "assistant")
    ]
    old, tail = split(messages, 500)
    assert old + tail == messages
    assert tail[0]["role"] == "user"
    assert 0 < len(tail) < len(messages)


def test_compaction_happens_in_time() -> None:
    assert not is_due(60_000, 100_000)
    assert is_due(70_000, 100_000)


def write(path: str) -> str:
    return f"{{calls: [{{name: write_file, arguments: {{path: {path}, content: x}}}}]}}"


def file_tool() -> Tool:
    return Tool("write_file", "Write.", {"type": "object"}, lambda _arguments, _context: "{}")


def test_the_summary_request_continues_the_conversation_for_the_cache(scene: Scene) -> None:
    steps = "steps: [{say: a1}, {say: a2}, {say: a3}, {say: Summed up.}]"
    provider = OpenAICompatible("m", scene.server(steps).base_url, window=3000)
    agent = scene.with_providers([provider], file_tool())
    for number in range(3):
        list(agent.turn(f"{number} {LONG * 3}"))
    assert isinstance(agent.compress(), CompactionResult)
    last, summary = scene.servers[0].requests[-2:]
    assert summary["tools"] == last["tools"]
    assert summary["messages"][: len(last["messages"])] == last["messages"]
    task = summary["messages"][-1]["content"]
    for section in ("Goal", "Decisions", "What the user asked for", "Files", "Open steps"):
        assert f"## {section}\n" in task


def test_a_model_that_calls_tools_instead_of_a_summary_gets_a_transcript(scene: Scene) -> None:
    steps = (
        f"steps: [{{say: a1}}, {{say: a2}}, {{say: a3}}, {write('no.txt')}, {{say: Summed up.}}]"
    )
    provider = OpenAICompatible("m", scene.server(steps).base_url, window=3000)
    agent = scene.with_providers([provider], file_tool())
    for number in range(3):
        list(agent.turn(f"{number} {LONG * 3}"))
    result = agent.compress()
    assert isinstance(result, CompactionResult)
    assert result.summary == "Summed up."
    second = scene.servers[0].requests[-1]
    assert [message["role"] for message in second["messages"]] == ["system", "user"]
    assert f"[user] 0 {LONG}" in second["messages"][1]["content"]
    assert not second.get("tools")


def test_a_long_conversation_keeps_files_wishes_and_open_steps(scene: Scene) -> None:
    """150 prompts and answers, compacted twice by a model whose summaries forget everything."""
    todo = (
        "{calls: [{name: todo, arguments: {items: [{text: draw the map, status: done}, "
        "{text: name the islands, status: active}]}}]}"
    )
    special = {3: write("maps/north.txt"), 40: todo, 141: write("maps/south.txt")}
    turns = [[*special.get(number, "").splitlines(), "{say: Fine.}"] for number in range(150)]
    turns[68].insert(0, "{say: Forgotten.}")
    answers = [step for turn in turns for step in turn]
    answers += ["{say: Forgotten again.}", "{say: The last one.}"]
    server = scene.server(f"steps: [{', '.join(answers)}]")
    provider = OpenAICompatible("m", server.base_url, window=100_000)
    agent = scene.with_providers([provider], file_tool(), todo_tool())
    wishes = ["never use red ink", *(f"wish {number}: {LONG * 3}" for number in range(1, 150))]
    for text in wishes[:68]:
        list(agent.turn(text))
    assert isinstance(agent.compress(), CompactionResult)
    for text in wishes[68:]:
        list(agent.turn(text))
    again = agent.compress()
    assert isinstance(again, CompactionResult)
    assert again.summary == "Forgotten again."
    list(agent.turn("what now?"))
    context = server.requests[-1]["messages"][1]["content"]
    for needed in ("never use red ink", "maps/north.txt", "maps/south.txt", "name the islands"):
        assert needed in context
    assert "draw the map" not in context
    carried, _, first_kept = context.rpartition("\n\nwish ")
    number = int(first_kept.split(":")[0])
    assert f"wish {number - 1}: " in carried  # the newest that leave the context
    assert f"wish {number}: " not in carried
    assert len(scene.db.get_messages(agent.session_id, include_inactive=True)) > 300


class SummarizingServer(ScriptServer):
    """A model that answers requests for a summary with one, and others by its script."""

    def next_step(self, body: JsonObject) -> tuple[int, ScriptStep]:
        if "removed from your context" in str(body["messages"]).rpartition("'role': 'user'")[2]:
            return 1000 + len(self.requests), ScriptStep(say="Some files are written.")
        return super().next_step(body)


def test_a_single_long_turn_is_compacted_and_keeps_its_prompt(scene: Scene) -> None:
    """The results are short, the arguments long: only a summary frees up context."""
    calls = [
        f"{{calls: [{{name: write_file, arguments: {{path: f{number}, content: {LONG * 5}}}}}]}}"
        for number in range(30)
    ]
    script = ModelScript.parse(f"steps: [{', '.join(calls)}, {{say: Done.}}]")
    prompt = f"write 30 files {'with care ' * 300}and no red ink"
    with SummarizingServer(script) as server:
        provider = OpenAICompatible("m", server.base_url, window=8_000)
        scene.answers["pre_llm_call"] = lambda **_fields: {"context": "It is raining."}
        agent = scene.with_providers([provider], file_tool())
        answer = list(agent.turn(prompt))[-1]
        sizes = [len(str(request["messages"])) // 4 for request in server.requests]
        last = server.requests[-1]["messages"]
    assert isinstance(answer, TurnFinished)
    assert not answer.error
    assert max(sizes) < 8_500
    assert last[1]["role"] == "user"
    assert f"\n\n{prompt}" in last[1]["content"]
    assert "It is raining." in last[1]["content"]
    assert "Some files are written." in last[1]["content"]
    assert "- f0\n" in last[1]["content"]
    called = [call["id"] for message in last for call in message.get("tool_calls", ())]
    answered = [message["tool_call_id"] for message in last if message["role"] == "tool"]
    assert called == answered


def test_a_summary_that_was_cut_off_says_so_to_the_model(scene: Scene) -> None:
    steps = "steps: [{say: a1}, {say: a2}, {say: a3}, {say: They want, finish: length}]"
    provider = OpenAICompatible("m", scene.server(steps).base_url, window=700)
    agent = scene.with_providers([provider])
    for number in range(3):
        list(agent.turn(f"{number} {LONG}"))
    assert isinstance(agent.compress(), CompactionResult)
    list(agent.turn("and now?"))
    context = scene.servers[0].requests[-1]["messages"][1]["content"]
    assert context.startswith(f"{SUMMARY_HEADING}They want\n\n[The summary is cut off here")
