"""History search within one chat."""

from __future__ import annotations

from hermes_conversation.history_scope import SEARCH_PAGE_SIZE, ScopedHistory
from hermes_state import SessionDB


def test_a_hit_of_the_chat_is_found_after_many_hits_of_other_chats() -> None:
    with SessionDB() as db:
        db.create_session("own", "telegram", session_key="chat:own")
        own_text = "needle in a long text " + "of hay " * 200
        db.append_message("own", "user", own_text)
        db.create_session("other", "telegram", session_key="chat:other")
        others = [{"role": "user", "content": "needle"}] * (SEARCH_PAGE_SIZE + 50)
        db.append_messages_batch("other", others)
        first_page = db.search_messages("needle", limit=SEARCH_PAGE_SIZE)
        assert {hit["session_id"] for hit in first_page} == {"other"}
        hits = ScopedHistory(db, "chat:own").find("needle")
        assert [hit.session_id for hit in hits] == ["own"]
