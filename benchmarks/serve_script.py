"""A scripted model in its own process: prints its URL, serves until it is killed.

python benchmarks/serve_script.py WORDS
"""

from __future__ import annotations

import sys
from pathlib import Path

from hermes_agent.providers.scripted import ModelScript, ScriptStep

MAX_ANSWERS = 10_000

if __name__ == "__main__":
    sys.path.append(str(Path(__file__).resolve().parent.parent / "tests"))
    from support.scripted_server import ScriptServer

    step = ScriptStep(say=" ".join(["word"] * int(sys.argv[1])))
    server = ScriptServer(ModelScript([step] * MAX_ANSWERS))
    print(server.base_url, flush=True)
    server.serve()
