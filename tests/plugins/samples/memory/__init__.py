"""A memory provider that remembers everything in a file."""

import json

from agent.memory_provider import MemoryProvider
from hermes_constants import get_hermes_home


class FileMemory(MemoryProvider):
    @property
    def name(self):
        return "file-memory"

    @property
    def path(self):
        return get_hermes_home() / "remembered"

    def is_available(self):
        return not (get_hermes_home() / "no_memory").exists()

    def initialize(self, session_id, **kwargs):
        self.started = session_id, kwargs["platform"]

    def system_prompt_block(self):
        return f"Memory of {self.started[1]}."

    def prefetch(self, query, *, session_id=""):
        return f"Remembered: {self.path.read_text()}" if self.path.exists() else ""

    def sync_turn(self, user_content, assistant_content, *, session_id=""):
        self.path.write_text(f"{user_content} -> {assistant_content}")

    def get_tool_schemas(self):
        parameters = {"type": "object", "properties": {}}
        return [{"name": "recall_all", "description": "Recall.", "parameters": parameters}]

    def handle_tool_call(self, tool_name, args, **kwargs):
        return json.dumps({"tool": tool_name, "session": kwargs["session_id"]})

    def on_session_end(self, messages):
        (get_hermes_home() / "ended").write_text(str(len(messages)))


def register(ctx):
    ctx.register_memory_provider(FileMemory())
