"""After a compaction a model is sent the summary and, word for word, what was shown last."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hermes_agent.context.compaction import SUMMARY_HEADING, Compacted
from hermes_agent.providers.openai_compatible import OpenAICompatible
from support.shown import Sent, again, assert_goes_on, requests, said, serialised, shown

if TYPE_CHECKING:
    from agent.conftest import Scene

LONG = "x" * 400


class Compaction:
    """A conversation of three long exchanges that was summed up."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        steps = "steps: [{say: A1}, {say: A2}, {say: A3}, {say: Sum.}, {say: A4}, {say: A5}]"
        provider = OpenAICompatible("m", scene.server(steps).base_url, window=700)
        self.agent = scene.with_providers([provider])
        self.seen = [shown(text, self.agent.turn(text)) for text in
                     (f"{number} {LONG}" for number in range(3))]  # fmt: skip
        assert isinstance(self.agent.compress(), Compacted)
        self.summary = said(f"{SUMMARY_HEADING}Sum.")

    def ask(self, text: str) -> Sent:
        """What was shown; asked by an agent that knows nothing yet."""
        return shown(text, again(self.scene, self.agent, window=700).turn(text))

    def assert_sent(self, *messages: dict[str, Any]) -> None:
        prompt = requests(self.scene)[0][0]
        assert serialised(requests(self.scene)[-1]) == serialised([prompt, *messages])


def test_after_a_compaction_summary_and_tail_are_sent_and_stay_the_same(scene: Scene) -> None:
    compaction = Compaction(scene)
    four = compaction.ask("four")
    compaction.assert_sent(compaction.summary, *compaction.seen[2], said("four"))
    compaction.ask("five")
    compaction.assert_sent(compaction.summary, *compaction.seen[2], *four, said("five"))
    assert_goes_on(requests(scene)[4], requests(scene)[5])


def test_an_undo_after_a_compaction_takes_back_the_last_exchange_only(scene: Scene) -> None:
    compaction = Compaction(scene)
    compaction.ask("four")
    scene.db.undo(compaction.agent.session_id)
    compaction.ask("other four")
    compaction.assert_sent(compaction.summary, *compaction.seen[2], said("other four"))


def test_an_undo_and_a_redo_around_what_a_compaction_kept(scene: Scene) -> None:
    compaction = Compaction(scene)
    scene.db.undo(compaction.agent.session_id)
    scene.db.redo(compaction.agent.session_id)
    compaction.ask("four")
    compaction.assert_sent(compaction.summary, *compaction.seen[2], said("four"))


def test_no_undo_takes_back_the_summary_that_nobody_said(scene: Scene) -> None:
    compaction = Compaction(scene)
    for _ in range(3):
        scene.db.undo(compaction.agent.session_id)
    compaction.ask("four")
    compaction.assert_sent(compaction.summary, said("four"))
