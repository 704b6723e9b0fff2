"""Registers for every hook, and writes the names of those that were called to a file."""

from hermes_constants import get_hermes_home

from hermes_cli.plugins import VALID_HOOKS, has_hook


def recorder(name):
    def record(**facts):
        with (get_hermes_home() / "called").open("a") as file:
            file.write(f"{name} {' '.join(sorted(facts))}\n")

    return record


def register(ctx):
    for name in sorted(VALID_HOOKS):
        ctx.register_hook(name, recorder(name))
    ctx.register_command("hooked", lambda name: str(has_hook(name)))
