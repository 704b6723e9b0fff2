"""The tools of `mcp_server.py` over stdio, without a library: starts in a tenth of the time.

python small_mcp_server.py stdio [--start-seconds N] [--leave-a-child PIDFILE]
    [--child COMMAND] [--many N]
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

READS = {"readOnlyHint": True}
PIXEL = b"\x89PNG\r\n\x1a\n" + bytes(22)
TEXT, NUMBER, INTEGER = {"type": "string"}, {"type": "number"}, {"type": "integer"}
PRINTING = threading.Lock()


def price(item):
    return f"{item} costs 3"


def order(item, count=1):
    return f"ordered {count} {item}"


def fail():
    raise ValueError("out of stock")


def picture():
    data = base64.b64encode(PIXEL).decode()
    return [{"type": "image", "data": data, "mimeType": "image/png"}]


def sleep(seconds):
    time.sleep(seconds)
    return "slept"


def die():
    os._exit(3)


def environment():
    ids = {"pid": str(os.getpid()), "parent": str(os.getppid()), "cwd": str(Path.cwd())}
    return json.dumps({**ids, **os.environ})


# Function, description, properties, required properties, annotations.
TOOLS = {
    "price": (price, "Look up what an item costs.", {"item": TEXT}, ["item"], READS),
    "order": (
        order, "Order an item; it will be delivered.", {"item": TEXT, "count": INTEGER},
        ["item"], None,
    ),
    "fail": (fail, "Fail on purpose.", {}, [], READS),
    "picture": (picture, "Show the shop.", {}, [], READS),
    "sleep": (sleep, "Take a while.", {"seconds": NUMBER}, ["seconds"], READS),
    "die": (die, "End the server in the middle of a call.", {}, [], READS),
    "environment": (
        environment, "Report the server's process IDs, directory and environment.", {}, [], READS,
    ),
}  # fmt: skip


def listed(name):
    _, description, properties, required, annotations = TOOLS[name]
    schema = {"type": "object", "properties": properties, "required": required}
    tool = {"name": name, "description": description, "inputSchema": schema}
    return {**tool, "annotations": annotations} if annotations else tool


def call(parameters):
    function = TOOLS[parameters["name"]][0]
    try:
        result = function(**parameters.get("arguments") or {})
    except ValueError as error:
        return {"content": [{"type": "text", "text": str(error)}], "isError": True}
    content = [{"type": "text", "text": result}] if isinstance(result, str) else result
    return {"content": content, "isError": False}


def answer(request):
    method, parameters = request["method"], request.get("params") or {}
    if method == "initialize":
        return {
            "protocolVersion": parameters["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "shop", "version": "1"},
        }
    if method == "tools/list":
        return {"tools": [listed(name) for name in TOOLS]}
    if method == "tools/call":
        return call(parameters)
    return {} if method == "ping" else None


def reply(request):
    result = answer(request)
    response = {"jsonrpc": "2.0", "id": request["id"]}
    if result is None:
        response["error"] = {"code": -32601, "message": "Method not found"}
    else:
        response["result"] = result
    with PRINTING:
        sys.stdout.write(json.dumps(response) + "\n")
        sys.stdout.flush()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("transport", choices=["stdio"])
    parser.add_argument("--start-seconds", type=float, default=0)
    parser.add_argument("--leave-a-child", type=Path)
    parser.add_argument("--child", default="sleep 600")
    parser.add_argument("--many", type=int, default=0)
    options = parser.parse_args()
    time.sleep(options.start_seconds)
    if options.leave_a_child:
        child = subprocess.Popen(options.child.split())
        options.leave_a_child.write_text(f"{os.getpid()} {child.pid}")
    for number in range(options.many):
        text = "Look at a shelf. " + "long " * 500
        TOOLS[f"shelf{number:02}"] = (price, text, {"item": TEXT}, ["item"], None)
    for line in sys.stdin:
        request = json.loads(line)
        if "id" in request and "method" in request:
            threading.Thread(target=reply, args=(request,), daemon=True).start()


if __name__ == "__main__":
    main()
