"""The plots of the page, as SVG that needs nothing from elsewhere."""

import math
import operator
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

import pygal
from pygal.style import Style

from bench.table import number

# pygal leaves a finder of modules behind that Python 3.11 warns of at each import that fails.
sys.meta_path[:] = [finder for finder in sys.meta_path if type(finder).__name__ != "PluginImportFixer"]

INK, FAINT, BLUE = "#1f2933", "#cbd2d9", "#2563a8"
OURS: Final = ("#2563a8", "#5b9bd5", "#0b3c6f")
BY_HAND: Final = ("#6b7280", "#a3a9b3")
OTHERS: Final = ("#c2410c", "#15803d", "#7c3aed", "#db2777", "#0891b2", "#a16207", "#4d7c0f", "#9f1239")
FOUR: Final = ("#2563a8", "#c2410c", "#15803d", "#7c3aed")
WIDTH = 520
ROW = 34


def colours(names: Sequence[str]) -> list[str]:
    """One each: ours are blue, tables by hand are grey, the rest differ.

    >>> colours(["sexton_http", "plain_sql", "x.py"])
    ['#2563a8', '#6b7280', '#c2410c']
    """
    pools = {"sexton": list(OURS), "plain": list(BY_HAND)}
    others = list(OTHERS)
    chosen = []
    for name in names:
        pool = pools.get(name.partition("_")[0]) or others
        chosen.append(pool.pop(0) if pool else INK)
    return chosen


def _style(palette: Sequence[str]) -> Style:
    return Style(
        background="transparent",
        plot_background="transparent",
        foreground=INK,
        foreground_strong=INK,
        foreground_subtle=FAINT,
        opacity="1",
        opacity_hover="0.8",
        colors=tuple(palette),
        font_family="system-ui, sans-serif",
        label_font_size=14,
        major_label_font_size=14,
        legend_font_size=14,
        value_font_size=14,
        title_font_size=16,
        value_colors=(INK,) * len(palette),
        no_data_font_size=16,
        guide_stroke_color=FAINT,
        major_guide_stroke_color=FAINT,
        guide_stroke_dasharray="0",
        major_guide_stroke_dasharray="0",
    )


def _common(palette: Sequence[str], height: int) -> dict[str, Any]:
    return {
        "style": _style(palette),
        "js": (),
        "disable_xml_declaration": True,
        "width": WIDTH,
        "height": height,
        "legend_at_bottom": True,
        "legend_at_bottom_columns": 2,
        "margin_right": 40,
        "margin_bottom": 40,
        "truncate_label": 40,
        "truncate_legend": 40,
        "no_data_text": "nothing was measured",
    }


def decades(values: Sequence[float]) -> list[float]:
    """The powers of ten from below the least to above the greatest.

    >>> decades([285, 15_267]), decades([0.0])
    ([100, 1000, 10000, 100000], [1, 10])
    """
    exponents = [math.log10(max(value, 1)) for value in values]
    return [10**at for at in range(math.floor(min(exponents)), math.floor(max(exponents)) + 2)]


def bars(values: Mapping[str, float], title: str) -> str:
    """A bar for each system, the longest first; the axis is logarithmic, for they differ by orders."""
    ordered = sorted(values.items(), key=operator.itemgetter(1))
    ticks = decades([value for _, value in ordered])
    chart = pygal.HorizontalBar(
        **_common([BLUE], 90 + ROW * len(ordered)),
        title=title,
        show_legend=False,
        logarithmic=True,
        range=(ticks[0], ticks[-1]),
        zero=ticks[0],
        value_formatter=number,
    )
    chart.x_labels = [f"{name}: {number(value)}" for name, value in ordered]
    chart.y_labels = ticks
    chart.add("", [max(value, ticks[0]) for _, value in ordered])
    return _svg(chart)


def curves(series: Mapping[str, Sequence[tuple[float, float]]], palette: Sequence[str], title: str) -> str:
    """Latency by percentile; further right is rarer, by orders."""
    chart = pygal.XY(
        **_common(palette, 450 + 20 * len(series)),
        title=title,
        logarithmic=True,
        x_title="share of the calls that were at most as slow",
        y_title="ms",
        dots_size=2,
        show_x_guides=True,
    )
    places = {share: 100 / (100 - share) for share in (50.0, 90.0, 99.0, 99.9)}
    chart.x_labels = [*places.values()]
    chart.x_value_formatter = lambda place: f"{100 - 100 / place:.4g} %"
    chart.y_labels = [0.1, 1, 10, 100, 1000]
    chart.value_formatter = number
    for name, curve in series.items():
        chart.add(name, [(100 / (100 - share), max(ms, 0.01)) for share, ms in curve if share >= 25])
    return _svg(chart)


def reclaims(taken: Mapping[str, Mapping[str, float | None]], failures: Sequence[str], title: str) -> str:
    """Seconds from the end of the lost leases to the last one's next grant; a gap where that did not come."""
    chart = pygal.HorizontalBar(
        **_common(FOUR, 150 + 2 * ROW * max(1, len(taken))),
        title=title,
        value_formatter=lambda value: f"{value:g}",
    )
    chart.x_labels = list(taken)
    for failure in failures:
        chart.add(failure, [taken[name].get(failure) for name in taken])
    return _svg(chart)


def _svg(chart: Any) -> str:
    return str(chart.render(is_unicode=True))
