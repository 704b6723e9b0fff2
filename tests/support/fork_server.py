"""Starts programs of Hermes as forks of a process that has already imported their modules.

A program is a process of its own with its own arguments, environment, folder, standard streams
and exit code; only the import of the modules, most of the CPU time of a short command and of the
start of a server, happens once per test worker. Tests of the start itself start a new interpreter.

    python -P tests/support/fork_server.py FD     (FD: the server's end of a socket pair)
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import gc
import json
import os
import pkgutil
import runpy
import select
import signal
import socket
import subprocess
import sys
import termios
import threading
import time
import traceback
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

MAX_REQUEST_BYTES = 1 << 20
CLOSE_SECONDS = 10
PRELOADED = (
    "hermes_core", "hermes_state", "hermes_achievements", "hermes_agent", "hermes_plugin_host",
    "hermes_conversation", "hermes_cli",
)  # fmt: skip
# Modules that are separate programs, or need an optional dependency.
NOT_PRELOADED = ("__main__", ".local", ".mcp", "hermes_cli.plugins", ".tui")
# What commands import when they need it; no variable that tests set changes the import.
PRELOADED_LIBRARIES = (
    "anyio._backends._asyncio", "anyio.streams.tls", "argcomplete", "encodings.ascii",
    "encodings.cp437", "encodings.idna", "encodings.utf_8_sig", "glob", "h2.connection",
    "httpcore2", "multiprocessing.popen_spawn_posix", "multiprocessing.resource_tracker",
    "resvg_py", "ruamel.yaml.mergevalue", "tree_sitter", "tree_sitter_bash", "truststore",
)  # fmt: skip
STREAM_COUNT = 3
# The function of each program, by the module that `python -m` takes.
PROGRAMS = {
    "hermes_cli": ("hermes_cli.main", "entry"),
    "gateway.process.main": ("gateway.process.main", "main"),
    "tui_gateway.entry": ("tui_gateway.entry", "main"),
    "run": ("run", "main"),  # benchmarks/run.py
}


class ForkServer:
    """The test's side: one server process per test worker, started when first needed.

    *folders* are further places of modules that the server imports.
    """

    def __init__(self, *folders: Path) -> None:
        self._folders = folders
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def close(self) -> None:
        """End the server process."""
        if self._socket is not None and self._process is not None:
            self._socket.close()
            try:
                self._process.wait(CLOSE_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._socket = None

    def run(
        self,
        arguments: list[str],
        environment: dict[str, str],
        timeout: float,
        program: str = "hermes_cli",
    ) -> tuple[int, bytes, bytes]:
        """Run a command to its end; its exit code (negative: a signal), stdout and stderr.

        A program other than `hermes` is itself a module that the server imports once.
        """
        out_read, out_write = os.pipe()
        err_read, err_write = os.pipe()
        streams = (out_write, err_write)
        try:
            preloaded = () if program == "hermes_cli" else (program,)
            process = self.start(program, arguments, environment, streams, preloaded)
        finally:
            for descriptor in streams:
                os.close(descriptor)
        contents = [_Stream(out_read), _Stream(err_read)]
        try:
            code = process.wait(timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
        return code, contents[0].content(), contents[1].content()

    def start(
        self,
        program: str,
        arguments: list[str],
        environment: dict[str, str],
        streams: tuple[int, int],
        preloaded: tuple[str, ...] = (),
        *,
        stdin: int | None = None,
        has_own_session: bool = False,
    ) -> ForkedProcess:
        """Start a program with descriptors for stdout and stderr; without *stdin* it reads nothing.

        The server imports the modules *preloaded* once, before it forks.
        """
        null = os.open(os.devnull, os.O_RDONLY)
        try:
            return self._start(
                program,
                arguments,
                environment,
                [null if stdin is None else stdin, *streams],
                preloaded,
                has_own_session=has_own_session,
            )
        finally:
            os.close(null)

    def start_on_terminal(
        self, arguments: list[str], environment: dict[str, str], terminal: int
    ) -> ForkedProcess:
        """Start `hermes` in a session of its own that the terminal controls."""
        streams = [terminal] * STREAM_COUNT
        return self._start("hermes_cli", arguments, environment, streams, is_on_terminal=True)

    def _start(
        self,
        program: str,
        arguments: list[str],
        environment: dict[str, str],
        streams: list[int],
        preloaded: tuple[str, ...] = (),
        *,
        is_on_terminal: bool = False,
        has_own_session: bool = False,
    ) -> ForkedProcess:
        ours, theirs = socket.socketpair()
        request = {
            "program": program,
            "arguments": arguments,
            "environment": environment,
            "cwd": str(Path.cwd()),
            "preloaded": preloaded,
            "is_on_terminal": is_on_terminal,
            "has_own_session": has_own_session or is_on_terminal,
        }
        with theirs:
            self._send(request, [*streams, theirs.fileno()])
        return ForkedProcess(ours, arguments)

    def _send(self, request: dict[str, object], descriptors: list[int]) -> None:
        data = json.dumps(request).encode()
        assert len(data) < MAX_REQUEST_BYTES
        with self._lock:
            if self._socket is None:
                self._socket, self._process = _start(self._folders)
                atexit.register(self.close)
            socket.send_fds(self._socket, [data], descriptors)


class ForkedProcess:
    """A started program, with the methods of `subprocess.Popen` that tests use.

    The server sends two lines: the process id, then the exit code.
    """

    def __init__(self, connection: socket.socket, arguments: list[str]) -> None:
        self._connection = connection
        self.args = arguments
        self._received = b""
        self.returncode: int | None = None
        while b"\n" not in self._received:
            self._receive()
        self.pid = int(self._received.split(b"\n")[0])

    def _receive(self) -> None:
        chunk = self._connection.recv(64)
        assert chunk, "the fork server has ended"
        self._received += chunk

    def poll(self) -> int | None:
        """The exit code; None while the process runs."""
        try:
            return self.wait(0)
        except subprocess.TimeoutExpired:
            return None

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end; return the exit code (negative: a signal)."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while self._received.count(b"\n") < 2:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            if not select.select([self._connection], [], [], left)[0]:
                raise subprocess.TimeoutExpired(self.args, timeout or 0)
            self._receive()
        if self.returncode is None:
            self.returncode = int(self._received.split(b"\n")[1])
            self._connection.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal, unless the process has ended."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        """Ask the process to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End the process."""
        self.send_signal(signal.SIGKILL)


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


def _start(folders: tuple[Path, ...]) -> tuple[socket.socket, subprocess.Popen[bytes]]:
    """Start the server; it ends when this process does."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, MAX_REQUEST_BYTES)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, folders))}
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-P", __file__, str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            env=environment if folders else None,
        )
    return ours, process


def serve(requests: socket.socket) -> None:
    """Fork for every request until the other end is closed; report each exit code."""
    reports: dict[int, socket.socket] = {}
    child_ended, wakeup = socket.socketpair()
    child_ended.setblocking(False)
    wakeup.setblocking(False)
    signal.set_wakeup_fd(wakeup.fileno(), warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    while True:
        ready, _, _ = select.select([requests, child_ended], [], [])
        if child_ended in ready:
            child_ended.recv(1 << 12)
            _report_ended(reports)
        if requests not in ready:
            continue
        data, descriptors, _, _ = socket.recv_fds(requests, MAX_REQUEST_BYTES, STREAM_COUNT + 1)
        if not data:
            return
        request = json.loads(data)
        _import_all(request["preloaded"])
        *streams, report = descriptors
        process = os.fork()
        if process == 0:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for connection in (requests, child_ended, wakeup, *reports.values()):
                connection.close()
            os.close(report)
            _run(request, streams)
        for stream in streams:
            os.close(stream)
        reports[process] = socket.socket(fileno=report)
        _report(reports[process], process)


def _report_ended(reports: dict[int, socket.socket]) -> None:
    """Send the exit codes of the processes that have ended."""
    while reports:
        process, status = os.waitpid(-1, os.WNOHANG)
        if not process:
            return
        with reports.pop(process) as connection:
            _report(connection, os.waitstatus_to_exitcode(status))


def _report(connection: socket.socket, number: int) -> None:
    with contextlib.suppress(OSError):  # the test has ended meanwhile
        connection.sendall(f"{number}\n".encode())


def _run(request: dict[str, object], streams: list[int]) -> None:
    """Become the command: its folder, environment, streams and arguments."""
    for number, descriptor in enumerate(streams):
        os.dup2(descriptor, number)
        os.close(descriptor)
    if request["has_own_session"]:
        os.setsid()
    if request["is_on_terminal"]:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
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
    file, main = _program(str(request["program"]))
    sys.argv = [str(file), *request["arguments"]]  # type: ignore[misc]
    code = _main(main)
    # As the interpreter ends, without the deletion of a thousand modules.
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError):
            stream.flush()
    os._exit(code)


def _program(name: str) -> tuple[Path, Callable[[], int | None]]:
    """The file and the function of a program; a script is run, with its folder on the path."""
    if name not in PROGRAMS:
        script = Path(name)
        sys.path.append(str(script.parent))
        return script, lambda: runpy.run_path(name, run_name="__main__") and None
    module, function = PROGRAMS[name]
    main = import_module(module)
    file = Path(str(main.__file__))
    main_file = file.with_name("__main__.py") if function == "entry" else file
    return main_file, getattr(main, function)


def _main(program: Callable[[], int | None]) -> int:
    """Run the program; its exit code, also after an exception."""
    try:
        return program() or 0
    except SystemExit as leaving:
        return leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
    except BaseException:  # noqa: BLE001 - printed, as the interpreter does
        traceback.print_exc()
        return 1


def _import_all(names: Iterable[str]) -> None:
    """Import modules before a fork; none of them may start a thread."""
    missing = [name for name in names if name not in sys.modules]
    for name in missing:
        import_module(name)
    if missing:
        gc.collect()
        gc.freeze()  # the collector of a fork does not touch, and so copy, what is shared
        assert threading.active_count() == 1


def preload() -> None:
    """Import the modules of the program, and load the trusted certificates."""
    import_module("hermes_state.engine.sqlite.driver").install()
    modules = [
        module.name
        for name in PRELOADED
        for module in pkgutil.walk_packages(import_module(name).__path__, f"{name}.")
        if not any(part in module.name for part in NOT_PRELOADED)
    ]
    _import_all([*modules, *PRELOADED_LIBRARIES])
    # Cached by the module; no test sets other certificates.
    import_module("hermes_agent.providers.http_stream").ssl_context()


if __name__ == "__main__":
    preload()
    serve(socket.socket(fileno=int(sys.argv[1])))
