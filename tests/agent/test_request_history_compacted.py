"""After a compaction the model receives the summary and the unchanged last messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hermes_agent.context.compaction import SUMMARY_HEADING, CompactionResult
from hermes_agent.providers.openai_compatible import OpenAICompatible
from support.rendered_history import (
    Messages,
    assert_extends,
    rendered_turn,
    reopen_agent,
    sent_messages,
    serialised,
    user_message,
)

if TYPE_CHECKING:
    from agent.conftest import Scene

LONG = "x" * 400


class Compaction:
    """A compacted conversation of three long exchanges."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        steps = "steps: [{say: A1}, {say: A2}, {say: A3}, {say: Sum.}, {say: A4}, {say: A5}]"
        provider = OpenAICompatible("m", scene.server(steps).base_url, window=700)
        self.agent = scene.with_providers([provider])
        self.rendered = [rendered_turn(text, self.agent.turn(text)) for text in
                     (f"{number} {LONG}" for number in range(3))]  # fmt: skip
        assert isinstance(self.agent.compress(), CompactionResult)
        self.summary = user_message(f"{SUMMARY_HEADING}Sum.")

    def ask(self, text: str) -> Messages:
        """Send a prompt with a new agent; return the rendered turn."""
        return rendered_turn(text, reopen_agent(self.scene, self.agent, window=700).turn(text))

    def assert_sent(self, *messages: dict[str, Any]) -> None:
        prompt = sent_messages(self.scene)[0][0]
        summary, first, *others = messages
        joined = user_message(f"{summary['content']}\n\n{first['content']}")
        assert serialised(sent_messages(self.scene)[-1]) == serialised([prompt, joined, *others])


def test_after_a_compaction_summary_and_tail_are_sent_and_stay_the_same(scene: Scene) -> None:
    compaction = Compaction(scene)
    four = compaction.ask("four")
    compaction.assert_sent(compaction.summary, *compaction.rendered[2], user_message("four"))
    compaction.ask("five")
    compaction.assert_sent(compaction.summary, *compaction.rendered[2], *four, user_message("five"))
    assert_extends(sent_messages(scene)[4], sent_messages(scene)[5])


def test_an_undo_after_a_compaction_undoes_only_the_last_exchange(scene: Scene) -> None:
    compaction = Compaction(scene)
    compaction.ask("four")
    scene.db.edits.undo(compaction.agent.session_id)
    compaction.ask("other four")
    compaction.assert_sent(compaction.summary, *compaction.rendered[2], user_message("other four"))


def test_undo_and_redo_of_the_uncompacted_messages(scene: Scene) -> None:
    compaction = Compaction(scene)
    scene.db.edits.undo(compaction.agent.session_id)
    scene.db.edits.redo(compaction.agent.session_id)
    compaction.ask("four")
    compaction.assert_sent(compaction.summary, *compaction.rendered[2], user_message("four"))


def test_undo_does_not_remove_the_summary(scene: Scene) -> None:
    compaction = Compaction(scene)
    for _ in range(3):
        scene.db.edits.undo(compaction.agent.session_id)
    compaction.ask("four")
    compaction.assert_sent(compaction.summary, user_message("four"))
