"""Numbers of all sessions."""

from __future__ import annotations

from hermes_state import SessionDB


def test_every_session_has_its_numbers() -> None:
    with SessionDB() as db:
        db.create_session("one", "cli", model="m", started_at=5.0, is_owned=False)
        db.append_message("one", "user", "hello", timestamp=7.0)
        usage = {"input_tokens": 10, "output_tokens": 4, "estimated_cost_usd": 0.5}
        db.update_token_counts("one", **usage)
        db.create_session("helper", "subagent", parent_session_id="one", is_owned=False)
        db.delete_session("one")
        numbers = {session.id: session for session in db.totals.per_session()}
    item = numbers["one"]
    assert (item.source, item.model, item.started_at, item.last_active) == ("cli", "m", 5.0, 7.0)
    assert (item.input_tokens, item.output_tokens, item.cost_usd, item.messages) == (10, 4, 0.5, 1)
    assert numbers["helper"].kind == "delegate"


def test_the_actual_cost_has_precedence_over_the_estimate() -> None:
    with SessionDB() as db:
        db.create_session("one", "cli", is_owned=False)
        db.update_token_counts("one", estimated_cost_usd=0.5, actual_cost_usd=0.2)
        assert db.totals.per_session()[0].cost_usd == 0.2
