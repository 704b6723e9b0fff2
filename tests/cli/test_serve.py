"""`hermes serve` on a fixed port."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from support.command_line import Hermes


def test_a_port_in_use_is_a_usage_error(hermes: Hermes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = hermes("serve", "--port", str(port))
    assert result.code == 2
    assert f"Cannot listen on port {port}" in result.err
    assert "Traceback" not in result.err


@pytest.mark.parametrize("port", ["70000", "-1"])
def test_a_port_that_cannot_be_is_a_usage_error(hermes: Hermes, port: str) -> None:
    result = hermes("serve", "--port", port)
    assert result.code == 2
    assert "0 to 65535" in result.err
    assert "Traceback" not in result.err
