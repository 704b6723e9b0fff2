"""The sandbox and the network: connections, loopback, Unix sockets."""

from __future__ import annotations

import socket
import threading
from typing import TYPE_CHECKING

import pytest

from security.conftest import SECRET, CanaryHome, needs_bubblewrap, run_in_mode

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = needs_bubblewrap
MODES = ("plan", "workspace", "full")


@pytest.fixture
def listener() -> Iterator[tuple[int, list[bytes]]]:
    """A server of this machine, outside the sandbox."""
    received: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.1)
        is_over = threading.Event()

        def accept() -> None:
            while not is_over.is_set():
                try:
                    connection, _ = server.accept()
                except TimeoutError:
                    continue
                with connection:
                    connection.settimeout(1)
                    received.append(connection.recv(1000))

        thread = threading.Thread(target=accept)
        thread.start()
        yield server.getsockname()[1], received
        is_over.set()
        thread.join()


SEND = "python3 -c \"import socket;socket.create_connection(('127.0.0.1',{port})).send(b'x')\""


@pytest.mark.parametrize("mode", ["plan", "workspace"])
def test_no_connection_leaves_the_sandbox(
    canary: CanaryHome, mode: str, listener: tuple[int, list[bytes]]
) -> None:
    port, received = listener
    run_in_mode(canary, mode, SEND.format(port=port), f"echo x > /dev/tcp/127.0.0.1/{port}")
    assert received == []


def test_the_network_is_there_once_it_was_allowed(
    canary: CanaryHome, listener: tuple[int, list[bytes]]
) -> None:
    port, received = listener
    command = f"curl -s http://host.invalid/; {SEND.format(port=port)}"
    (result,) = run_in_mode(canary, "workspace", command, reply="session")
    assert result["exit_code"] == 0, result
    assert received == [b"x"]


def test_commands_of_a_conversation_share_their_loopback(canary: CanaryHome) -> None:
    server = (
        "python3 -c \"import socket;s=socket.create_server(('127.0.0.1',8765));"
        "c,_=s.accept();c.send(b'hello')\" >/dev/null 2>&1 & sleep 1"
    )
    client = (
        "python3 -c \"import socket;print(socket.create_connection(('127.0.0.1',8765)).recv(9))\""
    )
    results = run_in_mode(canary, "workspace", server, client)
    assert results[1]["output"] == "b'hello'\n", results


@pytest.mark.parametrize(
    "command",
    [
        "kill 99999999; cat ~/.hermes/.env",
        "sudo -n cat ~/.hermes/.env",
        "systemctl restart x; python3 read.py",
        "ssh -V; python3 read.py",
    ],
)
def test_full_mode_asks_before_a_command_line_gets_to_see_secrets(
    canary: CanaryHome, command: str
) -> None:
    program = "from pathlib import Path; print(*[p.read_text() for p in Path.home().glob('.*/*')])"
    (canary.workspace / "read.py").write_text(program)
    (result,) = run_in_mode(canary, "full", command)
    assert SECRET not in str(result)
    assert "denied" in result["error"]
