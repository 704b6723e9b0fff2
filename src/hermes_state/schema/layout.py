"""Statements on the tables that record the layout of a history."""

from __future__ import annotations

from typing import Final

READ_LAYOUT: Final = "SELECT CAST(value AS INTEGER) FROM hermes_layout WHERE name = ?"
RAISE_LAYOUT: Final = """
    INSERT INTO hermes_layout (name, value) VALUES (?, ?)
    ON CONFLICT (name) DO UPDATE SET value = excluded.value
    WHERE CAST(hermes_layout.value AS INTEGER) < CAST(excluded.value AS INTEGER)
"""
ADD_LAYOUT: Final = "INSERT INTO hermes_layout (name, value) VALUES (?, ?) ON CONFLICT DO NOTHING"
RECORD_MIGRATION: Final = """
    INSERT INTO hermes_migration (number, name, applied_at, position) VALUES (?, ?, ?, ?)
"""
