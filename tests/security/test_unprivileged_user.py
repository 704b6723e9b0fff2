"""Both sandboxes of Linux, started by a user without privileges."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import hermes_agent.sandbox
from hermes_agent.tools import process_groups
from hermes_core import paths, public_addresses, system_programs
from support.waiting import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterator

USER = "nobody"
PYTHON = "/usr/bin/python3"  # one that another user may run
SECRET = "canary-9b1e"
PROGRAM = """
import json, os, sys
from pathlib import Path
from hermes_agent.sandbox import policy, runner

root = Path(sys.argv[1])
(root / "hermes").mkdir()
(root / "hermes" / ".env").write_text(sys.argv[3])
for name in ("work", "temporary"):
    (root / name).mkdir()
limits = policy.SandboxPolicy((root / "work",), (root / "hermes",), (), (), (), root / "temporary")
os.environ["OWN_SECRET"] = sys.argv[3]
environment = {"PATH": os.environ["PATH"], "HOME": str(root)}
commands = [
    f"cat {root}/hermes/.env",
    f"cat /proc/{os.getpid()}/environ",
    "echo x > made && echo made",
    f"echo x > {root}/outside",
    "id -u",
]
results = []
for command in commands:
    launch = runner.ProgramLaunch(
        ("bash", "-c", command), root / "work", limits, environment, options={"stdout": -1}
    )
    process = getattr(runner, sys.argv[2])(launch)
    results.append(process.communicate()[0].decode(errors="replace"))
print(json.dumps({"results": results, "files": sorted(os.listdir(root))}))
"""

SHARED_LOOPBACK = """
import sys
from pathlib import Path
from hermes_agent.sandbox import host_proxy, namespaces, policy, runner

root = Path(sys.argv[1])
for name in ("work", "temporary"):
    (root / name).mkdir()
limits = policy.SandboxPolicy((root / "work",), (), (), (), (), root / "temporary")
proxy = host_proxy.HostProxy(tuple(sys.argv[2:]))
limits = limits._replace(has_allowed_hosts=True)
namespace = namespaces.NetworkNamespace(proxy)

def start(code):
    command = ("/usr/bin/python3", "-c", "import socket; " + code)
    environment = {"PATH": "/usr/bin:/bin"}
    return runner.start_in_bubblewrap(runner.ProgramLaunch(
        command, root / "work", limits, environment, namespace=namespace, options={"stdout": -1}
    ))

server = start(
    "s = socket.create_server(('127.0.0.1', 0)); print(s.getsockname()[1], flush=True); "
    "s.accept()[0].sendall(b'reached')"
)
port = int(server.stdout.readline())
client = start(f"print(socket.create_connection(('127.0.0.1', {port})).recv(10).decode())")
print(client.communicate()[0].decode())
server.kill()
namespace.close()
proxy.close()
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder of the other user, with the sandbox package."""
    root = Path(tempfile.mkdtemp(prefix="hermes-user-", dir="/var/tmp"))
    shutil.chown(root, USER)
    package = root / "lib" / "hermes_agent"
    source = Path(str(hermes_agent.sandbox.__file__)).parent
    shutil.copytree(source, package / "sandbox", ignore=shutil.ignore_patterns("__pycache__"))
    (package / "tools").mkdir()
    shutil.copy(process_groups.__file__, package / "tools")
    core = root / "lib" / "hermes_core"
    core.mkdir()
    for module in (public_addresses, paths, system_programs):
        shutil.copy(str(module.__file__), core)
    for each in (package, package / "tools", core):
        (each / "__init__.py").touch()
    for path in (root / "lib").rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)
    (root / "lib").chmod(0o755)
    yield root
    shutil.rmtree(root)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
@pytest.mark.parametrize("start", ["start_in_bubblewrap", "start_in_landlock"])
def test_an_unprivileged_user_has_the_same_limits(folder: Path, start: str) -> None:
    done = subprocess.run(
        [PYTHON, "-c", PROGRAM, str(folder), start, SECRET],
        user=USER, group="nogroup", extra_groups=[], capture_output=True, check=True,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(folder / "lib")}, cwd="/",
    )  # fmt: skip
    report = json.loads(done.stdout)
    assert SECRET not in "".join(report["results"])
    assert report["results"][2] == "made\n"
    assert report["results"][4].strip() != "0"
    assert report["files"] == ["hermes", "lib", "temporary", "work"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
@pytest.mark.parametrize("hosts", [(), ("example.org",)])
def test_the_commands_of_an_unprivileged_user_share_a_loopback_interface(
    folder: Path, hosts: tuple[str, ...]
) -> None:
    done = subprocess.run(
        [PYTHON, "-c", SHARED_LOOPBACK, str(folder), *hosts],
        user=USER, group="nogroup", extra_groups=[], capture_output=True, check=False,
        timeout=PATIENCE_SECONDS, cwd="/", text=True,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(folder / "lib")},
    )  # fmt: skip
    assert done.stdout.strip() == "reached", done.stderr
