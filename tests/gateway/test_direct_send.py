"""Home channels, and messages that are not replies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from gateway.config import GatewayConfig, Platform
from gateway.outbound import direct_send
from support.gateways import local_message, open_routes

if TYPE_CHECKING:
    from pathlib import Path

    from hermes_state import SessionDB


@pytest.mark.parametrize("home", [{"chat_id": "7", "name": "Home"}, "7", 7])
def test_a_home_channel_is_parsed_in_every_notation(home: Any) -> None:
    config = GatewayConfig.from_dict({"platforms": {"telegram": {"home_channel": home}}})
    home_channel = config.get_home_channel(Platform.TELEGRAM)
    assert home_channel is not None
    assert (home_channel.platform, home_channel.chat_id) == (Platform.TELEGRAM, "7")


def test_messages_to_the_home_channel_are_stored_in_its_conversation(
    db: SessionDB, tmp_path: Path
) -> None:
    config = GatewayConfig.from_dict({"platforms": {"local": {"home_channel": "c1"}}})
    source = local_message("x", "0").source
    assert source is not None
    entry = open_routes(db, tmp_path).get_or_create_session(source)
    channel = direct_send.find_channel(db, config, "local")
    assert channel.session_id == entry.session_id
    direct_send.send(db, channel, "Tea — now", "k")
    (row,) = db.chats.find_incoming("sent:k")
    assert row.payload["text"] == "/sent Tea — now"
