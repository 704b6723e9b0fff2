"""Uses a method without a meaning here; asks for one first."""


def register(ctx):
    assert not hasattr(ctx, "register_tts_provider")
    ctx.register_hook("on_session_start", lambda **kwargs: None)
    ctx.register_context_engine(object())
