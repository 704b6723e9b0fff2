"""A package inside the plugin."""

from .upper import shouted as shouted
