"""Difficult conversations, each sent to every provider, whose documented rules are checked."""

from __future__ import annotations

import base64
import itertools
import json
from typing import TYPE_CHECKING, Any

import pytest

from hermes_agent.context.compaction import CompactionResult
from hermes_agent.events import ToolFinished, ToolStarted, TurnEnd
from hermes_agent.providers.apis import APIS, ModelChoice
from hermes_agent.providers.scripted import ModelScript
from hermes_agent.tools.base import Tool, success
from hermes_core import media_store
from support.dialects import Dialect, dialects
from support.scripted_server import ScriptServer

if TYPE_CHECKING:
    from agent.conftest import Scene
    from hermes_agent.agent import AIAgent
    from hermes_agent.events import TurnFinished
    from hermes_agent.providers.base import Provider

PIXEL = base64.b64encode(
    base64.b64decode(
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    )
).decode()
IMAGE = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}}
LOOK = "{name: look, arguments: {at: sky}}"
APIS_OF = {"chat": "openai", "responses": "responses", "anthropic": "anthropic", "gemini": "gemini"}


def look() -> Tool:
    return Tool("look", "Looks.", {"type": "object"}, lambda *_: success(seen="blue"))


class Talk:
    """A conversation with one provider."""

    def __init__(self, scene: Scene, dialect: Dialect) -> None:
        self.scene = scene
        self.dialect = dialect
        self.server: ScriptServer | None = None

    def provider(self, steps: str, **fields: Any) -> Provider:
        script = ModelScript.parse(f"steps: [{steps}]")
        self.server = self.scene.enter(ScriptServer(script, dialect=self.dialect))
        rules_of = f"https://{self.dialect.host}" if self.dialect.host else ""
        api = APIS[APIS_OF[self.dialect.api]]
        fields = {"effort": "low", "window": 60_000, "max_output": 8_000, **fields}
        base_url = self.server.base_url
        return ModelChoice(
            api, self.dialect.model, base_url, "key", rules_of=rules_of, **fields
        ).provider()

    def agent(self, steps: str, *tools: Tool, **options: Any) -> AIAgent:
        return self.scene.with_providers([self.provider(steps)], *(tools or (look(),)), **options)

    def bodies(self) -> list[Any]:
        assert self.server is not None
        return self.server.requests


@pytest.fixture(params=dialects(), ids=lambda dialect: dialect.name)
def talk(request: pytest.FixtureRequest, scene: Scene) -> Talk:
    dialect: Dialect = request.param
    return Talk(scene, dialect)


def ask(agent: AIAgent, text: Any = "go") -> TurnFinished:
    return [*agent.turn(text)][-1]  # type: ignore[return-value]


def assert_answer(last: TurnFinished, text: str) -> None:
    assert (last.end, last.text, last.error) == (TurnEnd.COMPLETE, text, "")


def test_parallel_calls_and_a_further_question(talk: Talk) -> None:
    agent = talk.agent(
        f"{{think: Hm., say: I look., calls: [{LOOK}, {LOOK}]}}, {{say: Blue.}}, {{say: Still.}}"
    )
    assert_answer(ask(agent), "Blue.")
    assert_answer(ask(agent, "and now?"), "Still.")
    assert len(talk.bodies()) == 3


def test_signatures_go_back_to_the_model_that_made_them(talk: Talk) -> None:
    agent = talk.agent(f"{{think: Hm., calls: [{LOOK}]}}, {{say: Blue.}}, {{say: Still.}}")
    assert_answer(ask(agent), "Blue.")
    assert_answer(ask(agent, "and now?"), "Still.")
    for issued in talk.dialect.issued:
        assert all(issued in str(body) for body in talk.bodies()[1:])
    if talk.dialect.signs or talk.dialect.api != "chat":
        assert talk.dialect.issued


def test_calls_one_after_the_other_with_reasoning_before_each(talk: Talk) -> None:
    step = f"{{think: Step., calls: [{LOOK}]}}"
    agent = talk.agent(f"{step}, {step}, {{think: End., say: Blue.}}, {step}, {{say: Yes.}}")
    assert_answer(ask(agent), "Blue.")
    assert_answer(ask(agent, "again"), "Yes.")


def test_steering_while_a_call_runs(talk: Talk) -> None:
    step = f"{{think: Step., calls: [{LOOK}]}}"
    agent = talk.agent(f"{step}, {step}, {{say: Blue.}}")
    for event in agent.turn("go"):
        if isinstance(event, ToolFinished):
            agent.steer("look closely")
    assert agent.conversation_store.history()[-1]["content"] == "Blue."


def test_an_image_of_the_user(talk: Talk) -> None:
    agent = talk.agent("{say: A dot.}, {say: Red.}")
    assert_answer(ask(agent, [{"type": "text", "text": "what?"}, IMAGE]), "A dot.")
    assert_answer(ask(agent, "which colour?"), "Red.")
    assert PIXEL in str(talk.bodies()[1])


def test_an_image_that_a_tool_returns(talk: Talk) -> None:
    media = media_store.of_home()

    def see(*_: object) -> str:
        kept = media.keep(base64.b64decode(PIXEL), "dot.png", "image/png")
        return success(image=media.reference(kept.path))

    tool = Tool("look", "Looks.", {"type": "object"}, see)
    agent = talk.agent(
        f"{{think: Hm., calls: [{LOOK}, {LOOK}]}}, {{say: A dot.}}, {{say: Red.}}", tool
    )
    assert_answer(ask(agent), "A dot.")
    assert_answer(ask(agent, "which colour?"), "Red.")
    assert str(talk.bodies()[2]).count(PIXEL) == 2


def test_a_failed_turn_is_continued(talk: Talk) -> None:
    step = f"{{think: Step., calls: [{LOOK}]}}"
    agent = talk.agent(f"{step}, {{fail: {{status: 401}}}}, {{say: Go on.}}, {step}, {{say: Yes.}}")
    assert ask(agent).end is TurnEnd.FAILED
    assert_answer(ask(agent, "and?"), "Go on.")
    assert_answer(ask(agent, "again"), "Yes.")


def test_a_turn_that_failed_at_once_is_continued(talk: Talk) -> None:
    agent = talk.agent("{fail: {status: 401}}, {say: Here.}")
    assert ask(agent).end is TurnEnd.FAILED
    assert_answer(ask(agent, "hello?"), "Here.")


def test_an_interrupted_turn_is_continued(talk: Talk) -> None:
    step = f"{{think: Step., calls: [{LOOK}, {LOOK}]}}"
    agent = talk.agent(f"{step}, {{say: Go on.}}")
    for event in agent.turn("go"):
        if isinstance(event, ToolStarted):
            agent.interrupt()
    assert_answer(ask(agent, "and?"), "Go on.")


def test_after_a_compaction(talk: Talk) -> None:
    step = f"{{think: Step., calls: [{LOOK}]}}, {{say: Blue.}}"
    agent = talk.agent(f"{step}, {step}, {step}, {{say: It was blue.}}, {step}")
    for number in range(3):
        assert_answer(ask(agent, f"{number} {'look ' * 10_000}"), "Blue.")
    assert isinstance(agent.compress(), CompactionResult)
    assert_answer(ask(agent, "and now?"), "Blue.")
    assert "It was blue." in str(talk.bodies()[-1])


@pytest.mark.parametrize("other", [each.name for each in dialects()][:12])
def test_a_conversation_that_began_with_another_provider(
    talk: Talk, scene: Scene, other: str
) -> None:
    first = next(each for each in dialects() if each.name == other)
    begun = Talk(scene, first).agent(
        f"{{think: Hm., calls: [{LOOK}, {LOOK}]}}, {{say: Blue.}},"
        f" {{think: Hm., calls: [{LOOK}]}}, {{think: So., say: Grey.}}"
    )
    assert_answer(ask(begun), "Blue.")
    assert_answer(ask(begun), "Grey.")
    step = f"{{think: Step., calls: [{LOOK}]}}"
    provider = talk.provider(f"{{say: Fine.}}, {step}, {{say: Yes.}}")
    agent = scene.with_providers([provider], look(), session_id=begun.session_id)
    assert_answer(ask(agent, "and you?"), "Fine.")
    assert_answer(ask(agent, "look"), "Yes.")


def test_another_provider_in_the_middle_of_a_turn(talk: Talk, scene: Scene) -> None:
    first = Talk(scene, next(each for each in dialects() if each.name == "Kimi"))
    fail = "{fail: {status: 401}}"
    step = f"{{think: Step., calls: [{LOOK}]}}"
    providers = [
        first.provider(f"{step}, {fail}"),
        talk.provider(f"{step}, {step}, {{say: Done.}}"),
    ]
    assert_answer(ask(scene.with_providers(providers, look())), "Done.")


NO_CALLS: dict[str, tuple[str, Any]] = {
    "chat": ("tool_choice", "none"),
    "responses": ("tool_choice", "none"),
    "anthropic": ("tool_choice", {"type": "none"}),
    "gemini": ("toolConfig", {"functionCallingConfig": {"mode": "NONE"}}),
}


def test_the_last_step_of_a_turn(talk: Talk) -> None:
    step = f"{{think: Step., calls: [{LOOK}]}}"
    agent = talk.agent(f"{step}, {{say: That is all.}}, {{say: More.}}", max_steps=2)
    last = ask(agent)
    assert (last.end, last.text) == (TurnEnd.TOO_LONG, "That is all.")
    first, second = talk.bodies()
    assert second["tools"] == first["tools"]
    name, choice = NO_CALLS[talk.dialect.api]
    assert (first.get(name), second.get(name)) == (None, choice)
    assert_answer(ask(agent, "continue"), "More.")


def test_a_model_that_calls_tools_in_the_last_step(talk: Talk) -> None:
    step = f"{{think: Step., calls: [{LOOK}]}}"
    agent = talk.agent(f"{step}, {step}, {{say: More.}}", max_steps=2)
    assert ask(agent).end is TurnEnd.TOO_LONG
    assert agent.conversation_store.history()[-1]["role"] == "tool"  # of the first step
    assert_answer(ask(agent, "continue"), "More.")


@pytest.mark.parametrize("name", ["functions.look", "", "look<|channel|>commentary", "9" * 100])
def test_a_call_of_a_tool_with_an_impossible_name(talk: Talk, name: str) -> None:
    agent = talk.agent(
        f"{{think: Hm., calls: [{{name: '{name}'}}, {LOOK}]}}, {{say: Blue.}}, {{say: Still.}}"
    )
    assert_answer(ask(agent), "Blue.")
    assert_answer(ask(agent, "and now?"), "Still.")


@pytest.mark.parametrize("arguments", ["[1]", "null", '{"at": ', "sky"])
def test_a_call_whose_arguments_are_no_object(talk: Talk, arguments: str) -> None:
    called = f"{{name: look, arguments: '{arguments}'}}"
    agent = talk.agent(
        f"{{think: Hm., calls: [{called}, {LOOK}]}}, {{say: Blue.}}, {{say: Still.}}"
    )
    assert_answer(ask(agent), "Blue.")
    assert_answer(ask(agent, "and now?"), "Still.")


def test_a_stored_conversation_in_which_ids_repeat(talk: Talk) -> None:
    agent = talk.agent("{say: Fine.}")
    agent.conversation_store.begin()
    function: Any = {"name": "look", "arguments": "{}"}
    calls: Any = [{"id": "call_0", "type": "function", "function": function}]

    def store(role: str, content: str = "", **fields: Any) -> None:
        talk.scene.db.append_message(agent.session_id, role, content, **fields)

    store("user", "go")
    store("assistant", tool_calls=calls * 2)
    for seen in ("blue", "grey"):
        store("tool", f"it is {seen}", tool_name="look", tool_call_id="call_0")
    store("user", "again")
    store("assistant", tool_calls=calls)  # killed before its result
    assert_answer(ask(agent, "and?"), "Fine.")
    sent = json.dumps(talk.bodies()[0])
    assert sent.index("it is blue") < sent.index("it is grey") < sent.index("was interrupted")
    roles = [message["role"] for message in agent.conversation_store.history()]
    assert roles.count("tool") == 3


def test_a_blank_prompt(talk: Talk) -> None:
    agent = talk.agent("{say: What?}, {say: Blue.}, {say: Fine.}")
    assert_answer(ask(agent, "  "), "What?")
    assert_answer(ask(agent, "\n"), "Blue.")
    assert_answer(ask(agent, "thanks"), "Fine.")


def test_a_prompt_with_half_a_character(talk: Talk) -> None:
    agent = talk.agent("{say: Blue.}")
    assert_answer(ask(agent, "what \ud83d?"), "Blue.")
    assert "what \ufffd?" in str(talk.bodies()[0])


def test_feedback_of_a_hook(talk: Talk) -> None:
    reasons = ["look again"]

    def ask_to_continue(**_fields: object) -> dict[str, str] | None:
        return {"action": "continue", "message": reasons.pop()} if reasons else None

    talk.scene.answers["pre_turn_end"] = ask_to_continue
    step = f"{{think: Step., calls: [{LOOK}]}}"
    agent = talk.agent(f"{step}, {{say: Blue.}}, {step}, {{say: Grey.}}")
    assert_answer(ask(agent), "Grey.")


def test_an_empty_answer(talk: Talk) -> None:
    agent = talk.agent(f"{{think: Hm., calls: [{LOOK}]}}, {{say: ''}}, {{say: Blue.}}, {{say: B.}}")
    assert_answer(ask(agent), "Blue.")
    assert_answer(ask(agent, "again"), "B.")


def test_a_conversation_that_begins_with_an_answer(talk: Talk) -> None:
    agent = talk.agent("{say: Fine.}")
    agent.conversation_store.begin()
    talk.scene.db.append_message(agent.session_id, "assistant", "Good morning.")
    assert_answer(ask(agent, "hello"), "Fine.")


def test_a_reminder_after_an_answer(talk: Talk) -> None:
    agent = talk.agent("{say: Fine.}, {say: Still.}")
    assert_answer(ask(agent), "Fine.")
    talk.scene.db.append_message(agent.session_id, "assistant", "It is nine o'clock.")
    assert_answer(ask(agent, "thanks"), "Still.")
    assert "It is nine" in str(talk.bodies()[1])


def test_calls_of_a_model_that_has_no_tools_now(talk: Talk) -> None:
    begun = talk.agent(f"{{think: Hm., calls: [{LOOK}]}}, {{say: Blue.}}")
    assert_answer(ask(begun), "Blue.")
    provider = talk.provider("{say: Fine.}")
    agent = talk.scene.with_providers([provider], session_id=begun.session_id)
    assert_answer(ask(agent, "and?"), "Fine.")


def test_an_empty_answer_that_was_stored_is_not_sent(talk: Talk) -> None:
    agent = talk.agent("{say: ''}, {say: ''}, {say: Blue.}")
    assert "empty answer" in ask(agent).notice
    assert_answer(ask(agent, "again"), "Blue.")


LISTS = {"chat": "messages", "responses": "input", "anthropic": "messages", "gemini": "contents"}


def without_cache_points(body: Any, name: str) -> str:
    """What precedes the answer, as it was sent, without the end of its list."""
    text = json.dumps([body.get("system"), body.get("tools"), body[name]])
    return text.replace(', "cache_control": {"type": "ephemeral"}', "")[:-2]


def cache_points(body: Any) -> list[int]:
    """The places of the messages that end with a cache point."""
    return [
        place
        for place, message in enumerate(body["messages"])
        if "cache_control" in message["content"][-1]
    ]


def test_each_request_begins_with_the_bytes_of_the_one_before(talk: Talk) -> None:
    step = f"{{think: Step., say: I look., calls: [{LOOK}, {LOOK}]}}"
    agent = talk.agent(
        f"{step}, {step}, {{think: End., say: Blue.}}, {step}, {{say: Grey.}}, {{say: Yes.}}"
    )
    for question in ("go", "again", "sure?"):
        ask(agent, question)
    name = LISTS[talk.dialect.api]
    sent = [without_cache_points(body, name) for body in talk.bodies()]
    assert len(sent) == 6
    for before, after in itertools.pairwise(sent):
        assert after.startswith(before)
    if talk.dialect.api != "anthropic":
        return
    for before, after in itertools.pairwise(talk.bodies()):
        # The last message of a request is read from the cache by the next one.
        assert cache_points(before)[-1] == len(before["messages"]) - 1
        assert cache_points(before)[-1] in cache_points(after)
        assert after["system"][-1]["cache_control"] == {"type": "ephemeral"}
