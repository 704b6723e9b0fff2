"""Aggregates over a history, and the charts made from them."""
