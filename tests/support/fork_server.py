"""Starts `hermes` commands as forks of a process that has already imported the program.

A command is a process of its own with its own arguments, environment, folder, standard streams
and exit code; only the import of the modules, most of the CPU time of a short command, happens
once per test worker. Tests of the start itself start a new interpreter.

    python -P tests/support/fork_server.py FD     (FD: the server's end of a socket pair)
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import json
import os
import pkgutil
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
from importlib import import_module
from pathlib import Path

MAX_REQUEST_BYTES = 1 << 20
PRELOADED = (
    "hermes_core", "hermes_state", "hermes_achievements", "hermes_agent", "hermes_plugin_host",
    "hermes_conversation", "hermes_cli",
)  # fmt: skip
# Modules that are separate programs, or need an optional dependency.
NOT_PRELOADED = ("__main__", ".local", ".mcp", "hermes_cli.plugins", ".tui")
STREAM_COUNT = 3


class ForkServer:
    """The test's side: one server process per test worker, started when first needed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def run(
        self, arguments: list[str], environment: dict[str, str], timeout: float
    ) -> tuple[int, bytes, bytes]:
        """Run a command to its end; its exit code (negative: a signal), stdout and stderr."""
        ours, theirs = socket.socketpair()
        out_read, out_write = os.pipe()
        err_read, err_write = os.pipe()
        null = os.open(os.devnull, os.O_RDONLY)
        try:
            request = {"arguments": arguments, "environment": environment, "cwd": str(Path.cwd())}
            self._send(request, [null, out_write, err_write, theirs.fileno()])
        finally:
            for descriptor in (null, out_write, err_write):
                os.close(descriptor)
            theirs.close()
        with ours:
            streams = [_Stream(out_read), _Stream(err_read)]
            code = _wait(ours, time.monotonic() + timeout, arguments)
            return code, streams[0].content(), streams[1].content()

    def _send(self, request: dict[str, object], descriptors: list[int]) -> None:
        data = json.dumps(request).encode()
        assert len(data) < MAX_REQUEST_BYTES
        with self._lock:
            if self._socket is None:
                self._socket, self._process = _start()
            socket.send_fds(self._socket, [data], descriptors)


class _Stream:
    """Reads a pipe to its end in a thread of its own."""

    def __init__(self, descriptor: int) -> None:
        self._chunks: list[bytes] = []
        self._thread = threading.Thread(target=self._read, args=(descriptor,), daemon=True)
        self._thread.start()

    def _read(self, descriptor: int) -> None:
        with open(descriptor, "rb", buffering=0) as pipe:
            while chunk := pipe.read(1 << 16):
                self._chunks.append(chunk)

    def content(self) -> bytes:
        self._thread.join()
        return b"".join(self._chunks)


def _start() -> tuple[socket.socket, subprocess.Popen[bytes]]:
    """Start the server; it ends when this process does."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, MAX_REQUEST_BYTES)
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-P", __file__, str(theirs.fileno())], pass_fds=[theirs.fileno()]
        )
    return ours, process


def _wait(connection: socket.socket, deadline: float, arguments: list[str]) -> int:
    """Wait for the process id, then for the exit code of a command."""
    reader = connection.makefile("r")
    process = int(reader.readline())
    connection.settimeout(max(0.0, deadline - time.monotonic()))
    try:
        return int(reader.readline())
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
        raise subprocess.TimeoutExpired(arguments, deadline) from None


def serve(requests: socket.socket) -> None:
    """Fork for every request until the other end is closed."""
    while True:
        data, descriptors, _, _ = socket.recv_fds(requests, MAX_REQUEST_BYTES, STREAM_COUNT + 1)
        if not data:
            return
        if os.fork() == 0:
            requests.close()
            _supervise(json.loads(data), descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


def _supervise(request: dict[str, object], descriptors: list[int]) -> None:
    """Run the command in a fork of this fork, and report its exit code."""
    *streams, report = descriptors
    process = os.fork()
    if process == 0:
        os.close(report)
        _run(request, streams)
    for stream in streams:
        os.close(stream)
    with socket.socket(fileno=report) as connection:
        connection.sendall(f"{process}\n".encode())
        _, status = os.waitpid(process, 0)
        with contextlib.suppress(OSError):  # the test has ended meanwhile
            connection.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())
    os._exit(0)


def _run(request: dict[str, object], streams: list[int]) -> None:
    """Become the command: its folder, environment, streams and arguments."""
    for number, descriptor in enumerate(streams):
        os.dup2(descriptor, number)
        os.close(descriptor)
    os.chdir(str(request["cwd"]))
    os.environ.clear()
    os.environ.update(request["environment"])  # type: ignore[call-overload]
    time.tzset()
    sys.stdin = open(0, closefd=False)  # noqa: SIM115 - open as long as the process
    sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115 - as above
    sys.stderr = open(  # noqa: SIM115 - as above
        2, "w", closefd=False, buffering=1, errors="backslashreplace"
    )
    sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr  # type: ignore[misc]
    sys.argv = [str(Path(import_module("hermes_cli").__path__[0]) / "__main__.py")]
    sys.argv += request["arguments"]  # type: ignore[operator]
    code = _main()
    # As the interpreter ends, without the deletion of a thousand modules.
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError):
            stream.flush()
    os._exit(code)


def _main() -> int:
    """Run the program; its exit code, also after an exception."""
    try:
        import_module("hermes_cli.main").entry()
    except SystemExit as leaving:
        return leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
    except BaseException:  # noqa: BLE001 - printed, as the interpreter does
        traceback.print_exc()
        return 1
    return 0


def preload() -> None:
    """Import the modules of the program."""
    import_module("hermes_state.engine.sqlite.driver").install()
    for name in PRELOADED:
        package = import_module(name)
        for module in pkgutil.walk_packages(package.__path__, f"{name}."):
            if not any(part in module.name for part in NOT_PRELOADED):
                import_module(module.name)
    gc.collect()
    gc.freeze()  # the collector of a fork does not touch, and so copy, what is shared


if __name__ == "__main__":
    preload()
    serve(socket.socket(fileno=int(sys.argv[1])))
