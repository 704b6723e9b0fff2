"""The plugin host under the name that plugins of hermes-agent import and patch.

`hermes_cli.plugins` and `hermes_plugin_host` are the same module object, so a function
that is replaced under one name is replaced under the other.
"""

import sys

import hermes_plugin_host
from hermes_compat.plugins.choice import choose_interface

choose_interface()
sys.modules[__name__] = hermes_plugin_host
