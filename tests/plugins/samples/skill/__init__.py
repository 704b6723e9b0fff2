"""A skill that comes with a plugin."""

from pathlib import Path


def register(ctx):
    ctx.register_skill("reading", Path(__file__).parent / "reading" / "SKILL.md")
