"""Several files and a package, imported in both ways."""

import hermes_plugins.several_files.counter as same_counter
from hermes_constants import get_hermes_home

from . import counter
from .text import shouted


def register(ctx):
    assert same_counter is counter
    ctx.register_command("count", lambda words: f"{counter.increment()} {shouted(words)}")
    ctx.register_command("home", lambda _words: str(get_hermes_home()))
