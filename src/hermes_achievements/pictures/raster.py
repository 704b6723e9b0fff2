"""An SVG as PNG, with fonts that come along."""

from __future__ import annotations

from functools import cache

from hermes_core.errors import HermesError


def png(svg: str, *, width: int | None = None) -> bytes:
    """*svg* as the bytes of a PNG; letters that Roboto lacks come from the system's fonts."""
    import resvg_py  # noqa: PLC0415 - large, and pictures are rarely wanted

    try:
        made = resvg_py.svg_to_bytes(
            svg_string=svg,
            width=width,
            font_files=_fonts(),
            font_family="Roboto",
            sans_serif_family="Roboto",
        )
    except ValueError as error:
        raise HermesError(f"the picture could not be drawn: {error}") from error
    return bytes(made)


@cache
def _fonts() -> list[str]:
    import font_roboto  # type: ignore[import-untyped]  # noqa: PLC0415 - as above

    return [font_roboto.Roboto, font_roboto.RobotoMedium, font_roboto.RobotoBold]
