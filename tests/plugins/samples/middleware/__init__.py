"""Middleware before and around tool calls."""

import json


def expand(tool_name, args, **kwargs):
    if tool_name == "terminal":
        return {"args": {**args, "command": args["command"].replace("@greeting", "echo hello")}}
    return None


def wrap(tool_name, args, next_call, **kwargs):
    if tool_name != "terminal":
        return next_call()
    if args["command"] == "cached":
        return {"output": "from the cache", "error": None}
    result = json.loads(next_call(args))
    return {**result, "wrapped": True}


def observe(next_call, **kwargs):
    next_call()


def register(ctx):
    ctx.register_middleware("tool_request", expand)
    ctx.register_middleware("tool_execution", wrap)
    ctx.register_middleware("tool_execution", observe)
