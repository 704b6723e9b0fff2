"""What an extension costs: the recipes of CONTRIBUTING, carried out in a copy of the sources.

A new setting, platform, provider, slash command, hook, metric or importer touches at most three
files besides its own, its documentation, tests, locks and generated files; then the program has it.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from hermes_core import paths

ROOT: Final = Path(__file__).parents[2]
MAX_TOUCHED_FILES: Final = 3
IGNORED: Final = shutil.ignore_patterns("__pycache__", "*.lock")


class Recipe(NamedTuple):
    """An extension: edits of existing files, files of its own, and how the program shows it."""

    edits: tuple[tuple[str, str, str], ...]  # file, a text in it, and what is added before it
    command: tuple[str, ...]  # arguments of Python
    shows: str
    own: tuple[tuple[str, str], ...] = ()


HERMES: Final = ("-m", "hermes_cli")
KEYS: Final = ("hermes_core/config/definitions/models.py", '    _key("zai",')
PRINT_HOOK: Final = """
import hermes_plugin_host
print(hermes_plugin_host.invoke_hook("on_greeting", session_id="s", text="hi"))
"""
PRINT_METRIC: Final = """
from hermes_achievements import catalogue
from hermes_achievements.metrics import COUNTS
found = [each.id for each in catalogue.load().achievements if each.value == "total_greetings"]
print(found, "greetings" in COUNTS)
"""
PRINT_COMMAND: Final = """
from hermes_conversation import slash_commands
from hermes_conversation.slash_commands import Surface
command = slash_commands.find("greet")
print(command.run(None, "Ada").text, Surface.PAGE in command.surfaces)
"""
METRIC: Final = '''
def greetings(session: SessionView) -> Events:
    """Greetings of the user."""
    return session.command_events(frozenset({"hello"}))


'''
ACHIEVEMENT: Final = """\
[[achievement]]
id = "hello-there"
name = "Hello There"
text = "You greeted."
counts = "Greetings."
icon = "message-circle"
kind = "first"
value = "total_greetings"
unit = "greetings"
goal = 1
tier = "clay"

"""
PLATFORM: Final = """
from hermes_core.config.platform_spec import COMMON_OPTIONS, PlatformSpec

PLATFORM = PlatformSpec(
    "zulip", "Zulip", "gateway.platforms.zulip.adapter", secrets=("ZULIP_API_KEY",),
    options=COMMON_OPTIONS, next_steps=("Create a Zulip bot:", "  hermes config set keys.zulip"),
)
"""
RECIPES: Final = {
    "setting": Recipe(
        (
            (
                "hermes_core/config/definitions/models.py",
                '    Setting(\n        "agent.max_steps"',
                '    Setting("agent.greeting", "str", "Hello", "Greeting."),\n',
            ),
        ),
        (*HERMES, "config", "get", "agent.greeting"),
        "Hello",
    ),
    "platform": Recipe(
        (
            (
                "gateway/platforms/registry.py",
                "from gateway.platforms.names",
                "from gateway.platforms import zulip\n",
            ),
            ("gateway/platforms/registry.py", "    webhook.PLATFORM,", "    zulip.PLATFORM,\n"),
            (*KEYS, '    _key("zulip", "ZULIP_API_KEY", "Key of your Zulip bot.", grants=True),\n'),
        ),
        (*HERMES, "gateway", "add", "zulip"),
        "Create a Zulip bot",
        (("gateway/platforms/zulip/__init__.py", PLATFORM),),
    ),
    "provider": Recipe(
        (
            (
                "hermes_agent/providers/apis.py",
                '    ProviderPreset(\n        "zai"',
                '    ProviderPreset("acme", "Acme", OPENAI_API, "https://acme.example/v1",\n'
                '                   "ACME_API_KEY", "acme-1"),\n',
            ),
            (*KEYS, '    _key("acme", "ACME_API_KEY", "API key for Acme."),\n'),
        ),
        (*HERMES, "models", "use", "acme:"),
        "Default model: acme-1 (https://acme.example/v1)",
    ),
    "slash command": Recipe(
        (
            (
                "hermes_conversation/slash_commands.py",
                "COMMANDS: Final = (",
                "def _greet(_conversation: Conversation, words: str) -> CommandOutcome:\n"
                '    return CommandOutcome(f"Hello, {words}.")\n\n\n',
            ),
            (
                "hermes_conversation/slash_commands.py",
                '    SlashCommand("new",',
                '    SlashCommand("greet", "greet", _greet, "[NAME]", surfaces=_EVERYWHERE),\n',
            ),
        ),
        ("-c", PRINT_COMMAND),
        "Hello, Ada. True",
    ),
    "hook": Recipe(
        (
            (
                "hermes_core/hooks.py",
                '    _hook(\n        "on_session_start"',
                '    _hook("on_greeting", "session_id text", "a greeting was sent"),\n',
            ),
        ),
        ("-c", PRINT_HOOK),
        "['heard hi']",
    ),
    "metric": Recipe(
        (
            ("hermes_achievements/metrics/tool_use.py", "def tool_calls", METRIC),
            ("hermes_achievements/catalogue/craft.toml", "[[achievement]]", ACHIEVEMENT),
        ),
        ("-c", PRINT_METRIC),
        "['hello-there'] True",
    ),
    "importer": Recipe(
        (("hermes_import/registry.py", '    "llm": (', '    "jotter": ("jotter", "Jotter"),\n'),),
        (*HERMES, "import", "nobody"),
        "jotter",
        (("hermes_import/agents/jotter.py", "from hermes_import.agents.llm import Llm as Jotter"),),
    ),
}


@pytest.mark.parametrize("name", RECIPES)
def test_an_extension_touches_at_most_three_files(
    name: str, tmp_path: Path, hermes_home: Path
) -> None:
    recipe = RECIPES[name]
    source = tmp_path / "src"
    shutil.copytree(ROOT / "src", source, ignore=IGNORED)
    for path, text in recipe.own:
        (source / path).parent.mkdir(exist_ok=True)
        (source / path).write_text(text)
    for path, anchor, added in recipe.edits:
        before = (source / path).read_text()
        assert anchor in before, f"{path} has changed: adapt the recipe, also in CONTRIBUTING.md"
        (source / path).write_text(before.replace(anchor, added + anchor, 1))
    plugin = hermes_home / "plugins" / "listener"
    plugin.mkdir(parents=True)
    (plugin / "plugin.yaml").write_text("version: '1'")
    (plugin / "__init__.py").write_text(
        "def register(ctx):\n"
        "    ctx.register_hook('on_greeting', lambda text, **_: f'heard {text}')\n"
    )
    (hermes_home / "config.yaml").write_text("plugins: {enabled: [listener]}\n")
    done = subprocess.run(
        [sys.executable, *recipe.command],
        env={**paths.environment(), "PYTHONPATH": str(source), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert recipe.shows in done.stdout + done.stderr, done
    assert len({path for path, _, _ in recipe.edits}) <= MAX_TOUCHED_FILES


def test_every_recipe_is_described() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    for name in RECIPES:
        article = "an" if name[0] in "aeio" else "a"
        assert f"**… {article} {name}" in text, name
