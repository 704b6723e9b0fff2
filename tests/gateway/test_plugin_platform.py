"""A platform from a plugin: the example of the guide."""

from __future__ import annotations

import getpass
import json
import re
from pathlib import Path

import pytest

from acceptance.campaign import wait_until
from gateway import status
from support.gateway_process import GatewayProcess
from support.model_servers import model_servers
from support.plugin_folders import make_plugin

GUIDE = Path(__file__).parents[2] / "docs/how-to/chat-apps.md"


@pytest.mark.parametrize("is_broken", [False, True])
def test_the_example_of_the_guide_works_and_a_broken_one_affects_no_other(
    hermes_home: Path, tmp_path: Path, *, is_broken: bool
) -> None:
    (code,) = re.findall(r"^```python\n(.*?)^```$", GUIDE.read_text(), re.MULTILINE | re.DOTALL)
    make_plugin(hermes_home, "folders", f"raise_here = 1 / {int(not is_broken)}\n{code}")
    folder = tmp_path / "questions"
    folder.mkdir()
    gateway = GatewayProcess()
    with model_servers() as start:
        server = start("[{say: Forty-two.}]")
        config = {
            "plugins": {"enabled": ["folders"]},
            "llm": {"api": "openai", "base_url": server.base_url, "model": "scripted"},
            "platforms": {
                "folder": {
                    "enabled": True,
                    "folder": str(folder),
                    "allowed_users": [getpass.getuser()],
                }
            },
        }
        (hermes_home / "config.yaml").write_text(json.dumps(config))
        (folder / "q1.question").write_text("What is six times seven?")
        gateway.start()
        try:
            wait_until(gateway.is_up, "the gateway")
            if is_broken:
                assert list((status.read_runtime_status() or {})["platforms"]) == ["local"]
                return
            wait_until((folder / "q1.answer").exists, "the answer")
            wait_until(lambda: bool((folder / "q1.answer").read_text()), "all of it")
            assert (folder / "q1.answer").read_text() == "Forty-two."
            assert (folder / "q1.taken").exists()
        finally:
            gateway.stop()
