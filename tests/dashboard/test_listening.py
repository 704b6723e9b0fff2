"""The address that the dashboard listens on."""

from __future__ import annotations

import argparse
import socket

import pytest

from hermes_cli.commands.dashboard import process
from hermes_core.config.file import ConfigFile
from hermes_core.errors import UsageError
from hermes_dashboard.server import NEXT_PORTS, open_next_socket, open_socket


def test_the_next_free_port_is_used_if_the_default_one_is_taken() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with open_next_socket("127.0.0.1", port) as listening:
            assert port < listening.getsockname()[1] <= port + NEXT_PORTS
        with pytest.raises(UsageError, match="Choose another port with --port"):
            open_socket("127.0.0.1", port)


def test_a_port_that_the_user_has_chosen_is_not_replaced() -> None:
    plain = argparse.Namespace(host=None, port=None)
    assert not process._plan(plain).is_port_chosen
    assert process._plan(argparse.Namespace(host=None, port=9229)).is_port_chosen
    ConfigFile.of_home().set("dashboard.port", "9400")
    assert process._plan(plain).is_port_chosen
