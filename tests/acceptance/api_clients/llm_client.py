"""Calls the API with the command `llm`; runs in `.clients`, prints its findings as JSON."""

from __future__ import annotations

import json
import os
import sys
from importlib.metadata import version
from pathlib import Path

from click.testing import CliRunner

MODEL = """
- model_id: hermes
  model_name: hermes
  api_base: {base_url}
  api_key_name: hermes
"""


def main() -> None:
    base_url, key = sys.argv[1:]
    folder = Path(os.environ["LLM_USER_PATH"])
    folder.mkdir()
    (folder / "extra-openai-models.yaml").write_text(MODEL.format(base_url=base_url))
    (folder / "keys.json").write_text(json.dumps({"hermes": key}))
    from llm.cli import cli  # noqa: PLC0415 - it reads the folder

    def run(*words: str) -> dict[str, object]:
        result = CliRunner().invoke(cli, ["-m", "hermes", *words])
        return {"code": result.exit_code, "output": result.output.strip()}

    found = {
        "version": version("llm"),
        "complete": run("--no-stream", "-u", "hi"),
        "streamed": run("-s", "Be brief.", "stream"),
        "continued": run("-c", "and?"),
        "failed": run("--no-stream", "fail 402"),
    }
    sys.stdout.write(json.dumps(found))


main()
