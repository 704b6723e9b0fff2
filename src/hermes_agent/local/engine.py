"""The program that runs the built-in model, in a process of its own.

llama.cpp is native code: it may crash, and releasing it may block for ever (its destructor waits
for a listener that another thread is still starting). Here neither reaches Hermes, and the
process can be killed. It is started as a script, without site-packages, so it imports nothing
of Hermes. One JSON object on standard input configures it; it answers with one line of JSON
and runs until standard input is closed, which the kernel does however Hermes ends.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any, NamedTuple

BATCH_TOKENS = 128  # prompt tokens processed between two checks for a closed connection


class EngineSettings(NamedTuple):
    """What Hermes sends on standard input, as a JSON object."""

    folder: str  # of the engine's library
    weights: str  # the file of the model
    window: int
    threads: int
    key: str  # required in requests


def main() -> None:
    """Load the weights, report the address of the HTTP server, and wait."""
    settings = EngineSettings(**json.loads(sys.stdin.readline()))
    report = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # the engine prints to standard output
    try:
        server = load(settings)
    except Exception as error:  # noqa: BLE001 - reported to Hermes, which shows it
        print(json.dumps({"error": f"{error}" or type(error).__name__}), file=report, flush=True)
        return
    print(json.dumps({"url": server.listening_address}), file=report, flush=True)
    sys.stdin.read()
    os._exit(0)  # the destructor of the server may never return


def load(settings: EngineSettings) -> Any:
    """Load the weights into a server that listens on a loopback port."""
    sys.path.insert(0, settings.folder)
    import xllamacpp  # type: ignore[import-not-found]  # noqa: PLC0415 - found in that folder

    params = xllamacpp.CommonParams()
    params.model.path = settings.weights
    params.n_ctx = settings.window
    params.n_batch = BATCH_TOKENS
    params.n_gpu_layers = 0
    params.n_parallel = 1
    params.warmup = False
    params.verbosity = -1
    params.cache_ram_mib = 0
    params.cpuparams.n_threads = settings.threads
    params.cpuparams_batch.n_threads = settings.threads
    params.api_keys = [settings.key]  # keeps the other programs of this machine out
    params.ui = False
    params.endpoint_slots = False
    return xllamacpp.Server(params)


if __name__ == "__main__":
    main()
