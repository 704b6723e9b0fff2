"""Installs, updates, removes and checks plugins of the user."""
