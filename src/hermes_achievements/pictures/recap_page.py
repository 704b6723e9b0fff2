"""A recap as a self-contained HTML page.

All stored texts are escaped. The page has no scripts and no external links, and its content
security policy forbids them.
"""

from __future__ import annotations

import base64
import hashlib
from typing import TYPE_CHECKING, Final

from hermes_achievements.pictures.svg import FALLBACK_ICON, drawings, escape_markup
from hermes_achievements.recap import periods
from hermes_achievements.recap.periods import WEEKDAY_NAMES, long_date, short_date
from hermes_achievements.recap.sentences import figures, highlights, plural, summary

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_achievements.catalogue import Catalogue, Tier
    from hermes_achievements.recap.periods import Cell
    from hermes_achievements.recap.recap import Recap, RecapCount, RecapTier

BASE_STYLE: Final = """
:root { color-scheme: light dark; --paper: #fbfbfd; --panel: #fff; --ink: #1d2130; --soft: #5c6479;
  --line: #e2e5ee; --accent: #1f8f6c; --w0: #eceef4; --w1: #bfe6d6; --w2: #7cc9ab; --w3: #37a07d;
  --w4: #0d6b4f; --on1: #1d2130; --on3: #fff; }
@media (prefers-color-scheme: dark) { :root { --paper: #12141c; --panel: #1b1e29; --ink: #eef0f6;
  --soft: #a3aabd; --line: #2b3040; --accent: #42b28e; --w0: #272b3a; --w1: #1d5247; --w2: #2a7f68;
  --w3: #42b28e; --w4: #7aeac0; --on1: #eef0f6; --on3: #12141c; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 2.5rem 1.25rem 4rem; max-width: 62rem; background: var(--paper);
  color: var(--ink); font: 1rem/1.5 system-ui, sans-serif; }
h1 { margin: 0; font-size: clamp(2rem, 6vw, 3.2rem); line-height: 1.1; }
h2 { margin: 0 0 .9rem; color: var(--soft); font-size: 1rem; font-weight: 500; }
header p, footer { color: var(--soft); } header p { margin: .4rem 0 1.5rem; }
footer { margin-top: 2rem; font-size: .85rem; }
section { margin: 1rem 0; padding: 1.1rem 1.25rem; border: 1px solid var(--line);
  border-radius: .9rem; background: var(--panel); }
dl { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(46%, 15rem), 1fr));
  gap: .75rem; margin: 0; }
dl div { display: flex; flex-direction: column-reverse; padding: .9rem 1.1rem;
  border: 1px solid var(--line); border-radius: .9rem; background: var(--panel); }
dt { color: var(--soft); font-size: .9rem; } dd { margin: 0; font-size: 1.5rem; font-weight: 700;
  white-space: nowrap; }
.scroll { overflow-x: auto; } svg { display: block; max-width: 100%; }
.strip { min-width: 44rem; width: 100%; } .month { width: 100%; max-width: 30rem; }
.pair, .three, .stack { display: grid; gap: 1rem; }
.pair { grid-template-columns: repeat(auto-fit, minmax(min(100%, 20rem), 1fr)); }
.three { grid-template-columns: repeat(auto-fit, minmax(min(100%, 16rem), 1fr)); }
.pair section, .three section { margin: 0; } .pair, .three { margin: 1rem 0; }
svg text { fill: var(--soft); font: 500 11px system-ui, sans-serif; }
.w0 { fill: var(--w0); } .w1 { fill: var(--w1); } .w2 { fill: var(--w2); }
.w3 { fill: var(--w3); } .w4 { fill: var(--w4); } .bar { fill: var(--accent); }
svg text.on1, svg text.on2 { fill: var(--on1); } svg text.on3, svg text.on4 { fill: var(--on3); }
.chart { width: 100%; height: auto; }
ol.ranked { margin: 0; padding: 0; list-style: none; }
ol.ranked li { display: grid; grid-template-columns: 1fr auto; gap: 0 1rem; margin: .5rem 0; }
ol.ranked span { overflow-wrap: anywhere; } ol.ranked b { color: var(--soft); font-weight: 400; }
ol.ranked svg { grid-column: 1 / 3; width: 100%; height: .35rem; margin-top: .15rem; }
ul.said { margin: 0; padding-left: 1.2rem; } ul.said li { margin: .35rem 0;
  overflow-wrap: anywhere; unicode-bidi: plaintext; }
ul.tiers { display: grid; grid-template-columns: repeat(auto-fill, minmax(14rem, 1fr)); gap: .75rem;
  margin: 0; padding: 0; list-style: none; }
ul.tiers li { display: flex; gap: .8rem; align-items: center; }
ul.tiers svg { flex: none; width: 2.6rem; height: 2.6rem; padding: .55rem; border-radius: 50%;
  border: 2px solid currentColor; fill: none; stroke: currentColor; stroke-width: 2;
  stroke-linecap: round; stroke-linejoin: round; }
ul.tiers b { display: block; overflow-wrap: anywhere; } ul.tiers small { color: var(--soft); }
@media print { body { max-width: none; padding: 0; } section { break-inside: avoid-page; } }
"""


def render_page(recap: Recap, name: str, catalogue: Catalogue) -> str:
    """*recap* of the period called *name*, as a page."""
    style = BASE_STYLE + "".join(map(_tier_style, catalogue.tiers))
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    parts = [
        f"<header><h1>{escape_markup(name)}</h1><p>{escape_markup(summary(recap))}</p></header>",
        _figures(recap),
        _rhythm(recap),
        _favourites(recap),
        _sentences(recap),
        _tier_ups(recap.tier_ups, catalogue),
        "<footer>Made by Hermes from your own history; nothing was sent anywhere.</footer>",
    ]
    body = "\n".join(part for part in parts if part)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8"/>\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}"/>\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1"/>\n'
        '<meta name="referrer" content="no-referrer"/>\n'
        f"<title>{escape_markup(name)}</title>\n<style>{style}</style>\n</head>\n"
        f"<body>\n{body}\n</body>\n</html>\n"
    )


def _tier_style(tier: Tier) -> str:
    """The colours of a tier on light and dark backgrounds."""
    return (
        f".tier-{tier.id} {{ color: {tier.colour}; }}\n"
        f"@media (prefers-color-scheme: dark) {{ .tier-{tier.id} {{ color: {tier.glow}; }} }}\n"
    )


def _figures(recap: Recap) -> str:
    items = "".join(
        f"<div><dt>{escape_markup(label)}</dt><dd>{escape_markup(value)}</dd></div>"
        for label, value in figures(recap)
    )
    return f"<dl>{items}</dl>"


def _rhythm(recap: Recap) -> str:
    """The days, with hours and weekdays below a strip or beside a calendar."""
    cells = periods.cells(recap.days)
    is_strip = periods.is_strip(recap.days)
    shapes = _strip(cells) if is_strip else _month(cells)
    days = f'<section><h2>Messages by day</h2><div class="scroll">{shapes}</div></section>'
    hours = [(f"{hour}", count) for hour, count in enumerate(recap.hours)]
    weekdays = [
        (name[:3], count) for name, count in zip(WEEKDAY_NAMES, recap.weekdays, strict=True)
    ]
    charts = (
        f"<section><h2>Messages by hour</h2>{_chart(hours, 3, 'Messages by hour')}</section>"
        f"<section><h2>Messages by weekday</h2>"
        f"{_chart(weekdays, 1, 'Messages by weekday')}</section>"
    )
    if is_strip:
        return f'{days}<div class="pair">{charts}</div>'
    return f'<div class="pair">{days}<div class="stack">{charts}</div></div>'


def _title(cell: Cell) -> str:
    value = plural(cell.messages, "message") if cell.messages else "nothing"
    return f"<title>{long_date(cell.day)}: {value}</title>"


def _strip(cells: list[Cell]) -> str:
    weeks = max(cell.week for cell in cells) + 1
    labels = "".join(
        f'<text x="{30 + week * 15}" y="11">{name}</text>'
        for week, name in periods.month_labels(cells)
    )
    beside = "".join(
        f'<text x="0" y="{29 + number * 15}">{WEEKDAY_NAMES[number][:3]}</text>'
        for number in (0, 2, 4)
    )
    squares = "".join(
        f'<rect class="w{c.level}" x="{30 + c.week * 15}" y="{18 + c.weekday * 15}" '
        f'width="12" height="12" rx="2.5">{_title(c)}</rect>'
        for c in cells
    )
    width = 30 + weeks * 15
    return _svg("strip", width, 124, "Messages by day", labels + beside + squares)


def _month(cells: list[Cell]) -> str:
    weeks = max(cell.week for cell in cells) + 1
    above = "".join(
        f'<text x="{number * 48 + 21}" y="11" text-anchor="middle">{name[:3]}</text>'
        for number, name in enumerate(WEEKDAY_NAMES)
    )
    squares = "".join(
        f'<g>{_title(c)}<rect class="w{c.level}" x="{c.weekday * 48}" y="{18 + c.week * 40}" '
        f'width="42" height="34" rx="6"/><text class="on{c.level}" x="{c.weekday * 48 + 21}" '
        f'y="{39 + c.week * 40}" text-anchor="middle">{int(c.day[8:])}</text></g>'
        for c in cells
    )
    return _svg("month", 330, 18 + weeks * 40, "Messages by day", above + squares)


def _chart(bars: list[tuple[str, int]], labelled: int, name: str) -> str:
    """A bar chart; every *labelled*-th bar has a label."""
    maximum = max(1, *(count for _, count in bars))
    step = 480 / len(bars)
    results = []
    for number, (label, count) in enumerate(bars):
        tall = max(2.0, 130 * count / maximum)
        x = number * step
        results.append(
            f"<g><title>{escape_markup(label)}: {plural(count, 'message')}</title>"
            f'<rect class="{"bar" if count else "w0"}" x="{x:.1f}" y="{132 - tall:.1f}" '
            f'width="{step * 0.76:.1f}" height="{tall:.1f}" rx="2.5"/></g>'
        )
        if number % labelled == 0:
            middle = f'x="{x + step * 0.38:.1f}" y="150" text-anchor="middle"'
            results.append(f"<text {middle}>{escape_markup(label)}</text>")
    return _svg("chart", 480, 156, name, "".join(results))


def _svg(kind: str, width: int, height: int, name: str, body: str) -> str:
    return (
        f'<svg class="{kind}" viewBox="0 0 {width} {height}" role="img" aria-label="{name}">'
        f"{body}</svg>"
    )


def _favourites(recap: Recap) -> str:
    lists = [
        f"<section><h2>{title}</h2>{_ranked(counted)}</section>"
        for title, counted in (
            ("Most used tools", recap.tools),
            ("Most used programs", recap.programs),
            ("Most used models, by messages", recap.models),
        )
        if counted
    ]
    return f'<div class="three">{"".join(lists)}</div>' if lists else ""


def _ranked(counted: Sequence[RecapCount]) -> str:
    maximum = counted[0].times
    items = "".join(
        f"<li><span>{escape_markup(item.name)}</span><b>{item.times:,}</b>"
        '<svg viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true">'
        '<rect class="w0" width="100" height="4"/>'
        f'<rect class="bar" width="{100 * item.times / maximum:.1f}" height="4"/></svg></li>'
        for item in counted
    )
    return f'<ol class="ranked">{items}</ol>'


def _sentences(recap: Recap) -> str:
    items = "".join(f"<li>{escape_markup(highlight)}</li>" for highlight in highlights(recap))
    if not items:
        return ""
    return f'<section><h2>Worth remembering</h2><ul class="said">{items}</ul></section>'


def _tier_ups(tier_ups: Sequence[RecapTier], catalogue: Catalogue) -> str:
    names = {tier.id: tier.name for tier in catalogue.tiers}
    shapes = drawings()
    items = "".join(
        f'<li><svg class="tier-{item["tier"]}" viewBox="0 0 24 24" aria-hidden="true">'
        f"{shapes.get(item['icon']) or shapes[FALLBACK_ICON]}</svg>"
        f"<span><b>{escape_markup(item['name'])}</b><small>{names[item['tier']]} · "
        f"{short_date(item['day'])}</small></span></li>"
        for item in reversed(tier_ups)
        if item["tier"] in names
    )
    if not items:
        return ""
    title = f"{plural(len(tier_ups), 'tier')} reached"
    return f'<section><h2>{title}</h2><ul class="tiers">{items}</ul></section>'
