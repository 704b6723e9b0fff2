"""What the model is told about the tools."""

from __future__ import annotations

import json

NAMES = (
    "terminal process read_file write_file patch search_files memory session_search session_read"
    " clarify todo"
)
MOST_TOKENS = 1_200
BYTES_PER_TOKEN = 4


def test_the_tools_have_the_names_that_histories_use(bench):
    assert " ".join(bench.tools) == NAMES


def test_the_schemas_cost_little_in_every_prompt(bench):
    schemas = [tool.schema() for tool in bench.tools.values()]
    size = len(json.dumps(schemas, separators=(",", ":")).encode())
    assert size / BYTES_PER_TOKEN < MOST_TOKENS


def test_every_required_parameter_exists(bench):
    for tool in bench.tools.values():
        assert set(tool.parameters["required"]) <= set(tool.parameters["properties"])


def test_no_arguments_at_all_are_answered_and_not_raised(bench):
    for name in bench.tools:
        assert isinstance(json.loads(bench.text(name)), dict)
