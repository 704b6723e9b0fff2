"""Tools: a handler with details, an async one, and one that registers itself."""

from tools.registry import registry, tool_error, tool_result

SCHEMA = {
    "name": "sample_add",
    "description": "Add two numbers.",
    "parameters": {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "required": ["a", "b"],
    },
}


def add(args, **kwargs):
    if "a" not in args:
        return tool_error("a is missing")
    return tool_result(sum=args["a"] + args["b"], task=kwargs["task_id"])


async def add_later(args, **kwargs):
    return add(args, **kwargs)


registry.register(
    name="sample_self_registered",
    toolset="sample",
    schema={"name": "sample_self_registered", "parameters": {"type": "object", "properties": {}}},
    handler=lambda args, **kwargs: tool_result({"registered": True}),
    check_fn=lambda: True,
    max_result_size_chars=1000,
)


def register(ctx):
    ctx.register_tool("sample_add", "sample", SCHEMA, add, emoji="+")
    ctx.register_tool(
        name="sample_add_later",
        toolset="sample",
        schema=SCHEMA,
        handler=add_later,
        is_async=True,
        description="Add two numbers later.",
    )
