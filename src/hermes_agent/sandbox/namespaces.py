"""A network namespace that the commands of one conversation share.

Without the network every sandbox would have a loopback interface of its own, and a command
could not reach the server that an earlier one left running. One idle process holds the
namespace; the sandboxes of the same conversation are started inside it.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Final

from hermes_agent.sandbox import bubblewrap
from hermes_agent.sandbox.host_proxy import FORWARDER, proxy_environment
from hermes_agent.tools import process_groups
from hermes_core.system_programs import system_program

if TYPE_CHECKING:
    from hermes_agent.sandbox.host_proxy import HostProxy

NSENTER: Final = "nsenter"
READY_MESSAGE: Final = b"ready"
# Ends with its standard input, which only this process holds.
HOLDER: Final = "echo ready; read -r _"
END_SECONDS: Final = 1.0


class NetworkNamespace:
    """Starts the holding process when first needed; it also leads to the proxy, if there is one."""

    def __init__(self, proxy: HostProxy | None = None) -> None:
        self._proxy = proxy
        self._proxy_port = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._target: int | None = None
        self._lock = threading.Lock()  # commands start in parallel; closing waits for nothing

    def enter(self) -> list[str]:
        """The start of a command line that runs inside; empty where that is not possible."""
        if system_program(NSENTER) is None:
            return []
        with self._lock:
            if self._process is None or self._process.poll() is not None:
                self.close()
                self._start()
        return [] if self._target is None else self._entering()

    def _entering(self) -> list[str]:
        options = ["--preserve-credentials", "--user", "--net", f"--target={self._target}"]
        return [system_program(NSENTER) or NSENTER, *options, "--"]

    @property
    def leads_to_hosts(self) -> bool:
        """Whether programs inside reach the allowed hosts."""
        return self._proxy is not None and self._proxy.is_used

    def environment(self) -> dict[str, str]:
        """The variables for programs inside: they use the proxy for allowed hosts."""
        return proxy_environment(self._proxy_port) if self._proxy_port else {}

    def close(self) -> None:
        """End the holding process; a namespace in use lives on until its last command ends."""
        process, self._process, self._target = self._process, None, None
        if process is None:
            return
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        process_groups.send(process.pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=END_SECONDS)

    def _holder(self) -> list[str]:
        if self._proxy is None or not self.leads_to_hosts:
            return ["/bin/sh", "-c", HOLDER]
        return [sys.executable, "-I", "-S", "-c", FORWARDER, str(self._proxy.start())]

    def _start(self) -> None:
        reader, writer = os.pipe()
        with os.fdopen(reader, "rb") as facts:
            self._process = subprocess.Popen(
                [
                    system_program(bubblewrap.PROGRAM) or bubblewrap.PROGRAM,
                    # A new /dev would put the process of a user without privileges into a
                    # second user namespace, from which the network cannot be entered.
                    "--unshare-user", "--unshare-net", "--ro-bind", "/", "/",
                    "--dev-bind", "/dev", "/dev",
                    "--info-fd", str(writer), "--", *self._holder(),
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                pass_fds=[writer],
                start_new_session=True,
            )  # fmt: skip
            os.close(writer)
            line = self._process.stdout.readline() if self._process.stdout is not None else b""
            if line.startswith(READY_MESSAGE):
                self._proxy_port = int(line.removeprefix(READY_MESSAGE).strip() or 0)
                self._target = int(json.load(facts)["child-pid"])
        if not self._can_be_entered():
            self._target = None

    def _can_be_entered(self) -> bool:
        """Whether a trial run inside succeeds; commands have interfaces of their own without."""
        if self._target is None:
            return False
        done = subprocess.run(
            [*self._entering(), "/bin/sh", "-c", ":"], capture_output=True,
            stdin=subprocess.DEVNULL, check=False, timeout=bubblewrap.PROBE_SECONDS,
        )  # fmt: skip
        return done.returncode == 0
