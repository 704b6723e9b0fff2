"""A transcriber of voice messages."""

from pathlib import Path


class Transcriber:
    name = "sample"

    def transcribe(self, path, **kwargs):
        if path.endswith(".bad"):
            return {"success": False, "error": "cannot hear anything"}
        return {"success": True, "transcript": f"{Path(path).name} was transcribed"}


def register(ctx):
    ctx.register_transcription_provider(Transcriber())
