"""Slack, as an app in Socket Mode."""
