"""A history to look at: invented, in a folder of its own, and gone with one command."""
