"""Imports a module without a counterpart here."""

from providers.base import ProviderProfile


def register(ctx):
    ProviderProfile("sample")
