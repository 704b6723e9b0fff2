"""Wants middleware around requests to the model."""


def register(ctx):
    ctx.register_middleware("llm_request", lambda **kwargs: None)
