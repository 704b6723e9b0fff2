"""The model, the tools and the input of the conversation, from hooks and a tool."""

import json


def register(ctx):
    def ask(args, **kwargs):
        answer = ctx.llm.complete([{"role": "user", "content": "What is it?"}], max_tokens=50)
        listed = json.loads(ctx.dispatch_tool("terminal", {"command": "echo from a plugin"}))
        injected = ctx.inject_message("Also mention the weather.")
        return {"answer": answer.text, "output": listed["output"], "injected": injected}

    ctx.register_tool("ask_around", "sample", {"type": "object", "properties": {}}, ask)
    ctx.register_command("inject", lambda words: str(ctx.inject_message(words)))
    ctx.register_command("tool", lambda words: ctx.dispatch_tool("terminal", {"command": words}))
