"""The settings of each area, in the order of docs/reference/settings.md."""
