"""The history as rows of numbers."""

from __future__ import annotations

from hermes_state import SessionDB


def test_every_session_is_there_with_its_numbers() -> None:
    with SessionDB() as db:
        db.create_session("one", "cli", model="m", started_at=5.0, is_owned=False)
        db.append_message("one", "user", "hello", timestamp=7.0)
        usage = {"input_tokens": 10, "output_tokens": 4, "estimated_cost_usd": 0.5}
        db.update_token_counts("one", **usage)
        db.create_session("helper", "subagent", parent_session_id="one", is_owned=False)
        db.delete_session("one")
        found = {one.id: one for one in db.session_numbers()}
    one = found["one"]
    assert (one.source, one.model, one.started_at, one.last_active) == ("cli", "m", 5.0, 7.0)
    assert (one.input_tokens, one.output_tokens, one.cost_usd, one.messages) == (10, 4, 0.5, 1)
    assert found["helper"].kind == "delegate"


def test_what_it_cost_counts_before_what_was_guessed() -> None:
    with SessionDB() as db:
        db.create_session("one", "cli", is_owned=False)
        db.update_token_counts("one", estimated_cost_usd=0.5, actual_cost_usd=0.2)
        assert db.session_numbers()[0].cost_usd == 0.2
