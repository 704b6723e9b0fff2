"""Costs of a conversation, and how reliable they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from hermes_agent.costs import billing_fields, price
from hermes_agent.events import MessageStored, Reply, Retrying, TurnEnd
from hermes_agent.messages import Usage
from hermes_agent.providers.apis import ANTHROPIC_API, COST_OPTIONS, ModelChoice
from hermes_agent.providers.openai_compatible import OpenAICompatible
from hermes_agent.providers.scripted import ModelScript, ScriptedProvider
from hermes_core.known_models import KnownModel, find_known_model

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent.conftest import Scene
    from hermes_agent.agent import AIAgent
    from hermes_agent.events import ProviderEvent
    from hermes_agent.messages import ModelRequest
    from hermes_agent.turn_control import Cancel

MILLION = Usage(input=1_000_000, output=1_000_000)


class Elsewhere(OpenAICompatible):
    """A local provider with a remote base URL, so that it has a price."""

    def __init__(self, base_url: str, model: str, endpoint: str) -> None:
        super().__init__(model, base_url, window=100_000)
        self.base_url = endpoint


class Uncounted(ScriptedProvider):
    """A provider that reports no token counts."""

    def stream(self, request: ModelRequest, cancel: Cancel) -> Iterator[ProviderEvent]:
        for event in super().stream(request, cancel):
            yield event._replace(usage=Usage()) if isinstance(event, Reply) else event


def row(scene: Scene, agent: AIAgent) -> dict[str, Any]:
    session = scene.db.get_session(agent.session_id)
    assert session is not None
    return session


def far(scene: Scene, steps: str, model: str = "gpt-4o") -> AIAgent:
    server = scene.server(f"steps: [{steps}]")
    return scene.with_providers([Elsewhere(server.base_url, model, "https://api.openai.com/v1")])


def test_a_known_model_has_a_price_that_adds_up(scene: Scene) -> None:
    agent = far(scene, "{say: Hello there.}, {say: Hello again.}")
    list(agent.turn("hi"))
    first = row(scene, agent)["estimated_cost_usd"]
    list(agent.turn("hi"))
    result = row(scene, agent)
    table = find_known_model("https://api.openai.com/v1", "gpt-4o")
    assert table is not None
    usage = Usage(result["input_tokens"], result["output_tokens"])
    assert 0 < first < result["estimated_cost_usd"]
    assert result["estimated_cost_usd"] == pytest.approx(price(usage, table))
    assert result["cost_status"] == "estimated"
    assert result["pricing_version"].startswith("genai-prices ")


def test_an_unknown_model_has_no_price(scene: Scene) -> None:
    agent = far(scene, "{say: Hello.}", "nobody-knows-it")
    list(agent.turn("hi"))
    result = row(scene, agent)
    assert result["estimated_cost_usd"] is None
    assert result["cost_status"] == "unknown"
    assert result["output_tokens"] > 0


def test_a_model_on_this_machine_costs_nothing(scene: Scene) -> None:
    agent = scene.agent("steps: [{say: Hello.}]")
    list(agent.turn("hi"))
    result = row(scene, agent)
    assert result["estimated_cost_usd"] == 0
    assert result["cost_status"] == "included"


def test_an_interrupted_answer_is_counted_by_its_streamed_text(scene: Scene) -> None:
    text = "word " * 100
    agent = far(scene, ", ".join([f"{{say: {text}, cut: true}}"] * 4))
    assert list(agent.turn("q " * 1_000))[-1].end is TurnEnd.FAILED
    result = row(scene, agent)
    assert result["input_tokens"] >= 500
    assert result["output_tokens"] >= 100
    assert result["estimated_cost_usd"] > 0
    assert result["cost_status"] == "estimated"


def test_an_abandoned_answer_is_counted_too(scene: Scene) -> None:
    agent = far(scene, "{say: one two three four five six, pause: 0.05}")
    events = agent.turn("hi")
    for event in events:
        if getattr(event, "text", "") == "three ":
            break
    events.close()  # type: ignore[attr-defined]
    result = row(scene, agent)
    assert result["output_tokens"] > 0
    assert result["estimated_cost_usd"] > 0


def test_a_server_that_does_not_count_is_counted_for(scene: Scene) -> None:
    provider = Uncounted(ModelScript.parse("steps: [{say: one two three four}]"))
    agent = scene.with_providers([provider])
    list(agent.turn("q " * 1_000))
    result = row(scene, agent)
    assert result["input_tokens"] >= 500
    assert result["output_tokens"] >= 4
    assert result["cost_status"] == "estimated"
    assert agent.context_tokens >= 500


def test_a_rejected_request_costs_nothing(scene: Scene) -> None:
    agent = far(scene, "{fail: {status: 401}}")
    list(agent.turn("hi"))
    assert not row(scene, agent)["estimated_cost_usd"]
    assert not row(scene, agent)["api_call_count"]


def test_a_try_that_failed_is_counted_for_the_model_that_failed(scene: Scene) -> None:
    cut = ", ".join(["{say: '', cut: true}"] * 4)
    first = ScriptedProvider(ModelScript.parse(f"steps: [{cut}]"), "first", window=100_000)
    second = ScriptedProvider(ModelScript.parse("steps: [{say: Hello.}]"), "second", window=100_000)
    agent = scene.with_providers([first, second])
    events = list(agent.turn("hi"))
    assert any(isinstance(event, Retrying) for event in events)
    assert len(first.requests) == 4
    assert row(scene, agent)["api_call_count"] == 5
    assert row(scene, agent)["model"] == "second"


def test_a_summary_is_counted(scene: Scene) -> None:
    steps = "{say: a}, {say: b}, {say: c}, {say: Summary.}"
    server = scene.server(f"steps: [{steps}]")
    provider = OpenAICompatible("m", server.base_url, window=700)
    agent = scene.with_providers([provider])
    for number in range(3):
        list(agent.turn(f"{number} " + "x" * 400))
    agent.compress()
    assert row(scene, agent)["api_call_count"] == 4


def test_the_cost_reported_by_openrouter_is_used(scene: Scene) -> None:
    server = scene.server("steps: [{say: Hello., cost: 0.0125}]")
    provider = OpenAICompatible("m", server.base_url, extra=COST_OPTIONS)
    agent = scene.with_providers([provider])
    list(agent.turn("hi"))
    assert row(scene, agent)["estimated_cost_usd"] == 0.0125
    assert row(scene, agent)["cost_status"] == "actual"
    assert server.requests[0]["usage"] == COST_OPTIONS["usage"]


def test_cached_tokens_have_their_own_price() -> None:
    model = KnownModel(1, 2.0, 0.5, None, 8.0, "v")
    assert price(MILLION, model) == 10.0
    assert price(Usage(cache_read=1_000_000), model) == 0.5
    assert price(Usage(cache_write=1_000_000), model) == 2.0
    assert price(MILLION, model._replace(output=None)) is None


def test_a_cost_is_listed_with_its_provider() -> None:
    provider = ModelChoice(ANTHROPIC_API, "claude-sonnet-4-5").provider()
    fields = billing_fields(MILLION, provider)
    assert fields["billing_provider"] == "anthropic"
    assert fields["estimated_cost_usd"] == pytest.approx(18.0)
    provider.close()


def test_each_answer_has_its_tokens_cost_and_time(scene: Scene) -> None:
    call = "{name: todo, arguments: {items: ['[ ] a']}}"
    agent = far(scene, f"{{calls: [{call}]}}, {{say: Hello there.}}")
    stored = [event for event in agent.turn("hi") if isinstance(event, MessageStored)]
    answers = scene.db.usage.answers(agent.session_id)
    assert [event.row_id for event in stored if event.usage is not None] == list(answers)
    assert len(answers) == 2
    session = row(scene, agent)
    assert sum(usage.output_tokens for usage in answers.values()) == session["output_tokens"]
    costs = [usage.cost_usd or 0 for usage in answers.values()]
    assert min(costs) > 0
    assert sum(costs) == pytest.approx(session["estimated_cost_usd"])
    assert {(usage.model, usage.cost_status) for usage in answers.values()} == {
        ("gpt-4o", "estimated")
    }
    assert all(usage.seconds > 0 for usage in answers.values())


def test_a_cut_answer_has_its_usage_too(scene: Scene) -> None:
    agent = far(scene, "{say: one two three, cut: true}")
    list(agent.turn("hi"))
    (usage,) = scene.db.usage.answers(agent.session_id).values()
    assert usage.output_tokens > 0
    assert usage.cost_status == "estimated"
