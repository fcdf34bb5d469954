"""The report: one page that needs nothing from elsewhere."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any, Final

from bench.leasebench import plots
from bench.table import number

FAILURES: Final = ("killed", "stopped", "held back", "cut off")
STYLE = """
body {
  font: 16px/1.5 system-ui, sans-serif; color: #1f2933; background: #fff;
  margin: 0 auto; max-width: 1180px; padding: 1.5rem 1rem 4rem;
}
h1 { font-size: 1.7rem; margin: 0 }
h2 { font-size: 1.25rem; margin: 2.5rem 0 .5rem }
p, ul { max-width: 46rem }
.small { color: #52606d; font-size: .875rem }
.wide { overflow-x: auto }
table { border-collapse: collapse; font-size: .875rem; font-variant-numeric: tabular-nums }
th, td { padding: .4rem .7rem; border-bottom: 1px solid #e4e7eb; text-align: right; white-space: nowrap }
td { vertical-align: top }
th { color: #52606d; font-weight: 600; white-space: normal; vertical-align: bottom }
th:first-child, td:first-child { text-align: left; position: sticky; left: 0; background: #fff }
.text { text-align: left; white-space: normal; min-width: 18rem }
.bad { color: #a61b1b; font-weight: 600 }
.good { color: #0b6e3b }
.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 480px), 1fr)); gap: 1rem }
figure { margin: 1.5rem 0 0 }
.plots svg { width: 100%; height: auto; max-width: 640px }
@media (max-width: 600px) {
  table { font-size: .8rem }
  th, td { padding: .35rem .5rem; white-space: normal }
  td:first-child { min-width: 6rem }
  .text { min-width: 13rem }
}
"""
Systems = Mapping[str, Mapping[str, Any]]


def written(found: Mapping[str, Any]) -> str:
    """The whole page, from what a run found."""
    systems: Systems = found["systems"]
    parts = [
        "<h1>leasebench</h1>",
        _paragraph(
            f"Lease services beside each other: {found['seconds']:g} s of each loop, and holders that are "
            f"killed, stopped and cut off for {found['pause_s']:g} s. The run took "
            f"{found['took_s'] / 60:.1f} minutes."
        ),
        f'<p class="small">{escape(_machine(found["machine"]))}</p>',
        *_warnings(found),
        *_section("What each does not do", KINDS_SAID, _table(KINDS, _kinds(systems))),
        *_section("Rates", RATES_SAID, _table(RATES, _rates(systems)), _plots(systems)),
        *_section("Failures", FAILED_SAID, _table(FAILED, _failures(systems)), _reclaims(systems)),
        *_section("Costs", COSTS_SAID, _table(COSTS, _costs(systems))),
    ]
    body = "\n".join(part for part in parts if part)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>leasebench</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{STYLE}</style></head><body>\n{body}\n</body></html>\n"
    )


KINDS_SAID: Final = "They are not products of one kind. Read this before any figure."
RATES_SAID: Final = (
    "One holder on the same machine as the service and the database. <em>Closed</em>: each of its loops "
    "calls again when it is answered. <em>Open</em>: calls are due at half of that rate, by the clock; a "
    "latency counts from when its call was due, so that a stall counts for all that waited behind it. In "
    "brackets: from when it was sent, which hides that wait."
)
FAILED_SAID: Final = (
    "Four holders of eight leases each fail at one moment: one is killed (SIGKILL), one is stopped "
    "(SIGSTOP), the network of one holds its bytes back, and that of one is cut. After the pause they come "
    "back and write, in the faith of holding what they held. A fifth has taken over meanwhile. What each "
    "believed is judged by one clock. A holder whose stale renewal is taken believes again, and so holds "
    "beside the other one."
)
COSTS_SAID: Final = (
    "Per second of a core. Where the service is a library, it works in the holder's process, and its column "
    "counts that process. <em>Per flush</em> shows that nobody wins by not flushing: one flush of the "
    "write-ahead log can serve no more calls than wait for it."
)


def _paragraph(text: str) -> str:
    """A fragment of HTML."""
    return f"<p>{text}</p>"


def _section(title: str, said: str, *parts: str) -> list[str]:
    """Nothing when there is nothing to show."""
    return [f"<h2>{escape(title)}</h2>", _paragraph(said), *parts] if any(parts) else []


def _machine(facts: Mapping[str, Any]) -> str:
    database = facts.get("postgresql", {})
    words = [f"{name} {value}" for name, value in facts.items() if name != "postgresql"]
    words += [
        f"{'PostgreSQL' if name == 'server_version' else name} {value}" for name, value in database.items()
    ]
    return ", ".join(words)


def _warnings(found: Mapping[str, Any]) -> list[str]:
    """What a reader is to hold against the figures."""
    said = []
    if found["seconds"] < 3:
        said.append("A quick run: its figures show that it runs, and nothing else.")
    if found["machine"].get("postgresql", {}).get("fsync") == "off":
        said.append("fsync is off: nothing here is durable.")
    said += [
        f"{one['about']['title']} could not be measured: {one['failed'].strip().splitlines()[-1]}"
        for one in found["systems"].values()
        if one["failed"]
    ]
    return [f'<p class="bad">{escape(text)}</p>' for text in said]


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Cells are HTML already; empty without rows."""
    top = "".join(f"<th{_LEFT if cell in WORDS else ''}>{escape(cell)}</th>" for cell in head)
    body = "".join("<tr>" + "".join(_cell(cell) for cell in row) + "</tr>\n" for row in rows)
    if not body:
        return ""
    return f'<div class="wide"><table><thead><tr>{top}</tr></thead>\n<tbody>{body}</tbody></table></div>'


def _cell(cell: str) -> str:
    return cell if cell.startswith("<td") else f"<td>{cell}</td>"


KINDS: Final = ("System", "Does not", "Versions")
WORDS: Final = frozenset(KINDS[1:])
_LEFT: Final = ' class="text"'


def _kinds(systems: Systems) -> Iterable[Sequence[str]]:
    for one in systems.values():
        about = one["about"]
        lacks = "; ".join(escape(text) for text in about["does_not"])
        versions = ", ".join(f"{name} {text}" for name, text in about.get("versions", {}).items())
        yield (
            escape(about["title"]),
            f'<td class="text">{lacks}</td>',
            f'<td class="text">{escape(versions)}</td>',
        )


RATES: Final = (
    "System",
    "Renewals/s, closed",
    "open: asked",
    "p50 ms",
    "p99 ms",
    "late or refused",
    "least time left, s",
    "Claims + reports/s, closed",
    "open: asked",
    "p50 ms",
    "p99 ms",
)


def _rates(systems: Systems) -> Iterable[Sequence[str]]:
    for one in systems.values():
        if rates := one.get("rates"):
            yield (
                escape(one["about"]["title"]),
                *_renewed(rates),
                number(rates["cycle closed"]["per_second"]),
                number(rates["cycle open"]["asked"]),
                *_latencies(rates["cycle open"]),
            )


def _renewed(rates: Mapping[str, Any]) -> Iterable[str]:
    """What is told of renewals; dashes where there is nothing to renew."""
    if "renew closed" not in rates:
        return ["-"] * 6
    loops = closed, paced = rates["renew closed"], rates["renew open"]
    return [
        number(closed["per_second"]),
        number(paced["asked"]),
        *_latencies(paced),
        _marked(sum(loop["late"] + loop["refused"] for loop in loops)),
        "-" if paced["slack_s"] is None else f"{paced['slack_s']:.1f}",
    ]


def _latencies(loop: Mapping[str, Any]) -> Iterable[str]:
    for share in ("50", "99"):
        due, sent = (loop[kind]["percentiles"][share] for kind in ("due", "sent"))
        yield f'{number(due)} <span class="small">({number(sent)})</span>'


def _marked(count: int) -> str:
    return f'<span class="bad">{count:,}</span>' if count else '<span class="good">0</span>'


FAILED: Final = (
    "System",
    "Term, s",
    "Held by two at once",
    "Writes of holders that had failed",
    "of them taken",
    "Stale writes taken",
    "Tokens that did not grow",
    *(f"{name}: taken over, s after the end" for name in FAILURES),
)


def _failures(systems: Systems) -> Iterable[Sequence[str]]:
    for one in systems.values():
        failures = one.get("failures")
        title = escape(one["about"]["title"])
        if not failures:
            continue
        if "skipped" in failures:
            yield title, f'<td class="text" colspan="{len(FAILED) - 1}">{escape(failures["skipped"])}</td>'
            continue
        kinds = Counter(fault["what"] for fault in failures["faults"])
        stale = sum(count for what, count in kinds.items() if "was taken" in what)
        yield (
            title,
            f"{failures['term_s']:g}",
            _marked(sum(count for what, count in kinds.items() if "two at once" in what)),
            f"{failures['late_writes']}",
            f"{failures['late_writes_taken']}",
            _marked(stale),
            _marked(sum(count for what, count in kinds.items() if "token" in what)),
            *(_takeover(failures["takeovers"][name]) for name in FAILURES),
        )


def _takeover(taken: Mapping[str, Any]) -> str:
    """The slowest; what nobody took is said."""
    if not taken["leases"]:
        return "-"
    if not taken["taken"]:
        return '<span class="bad">not within the pause</span>'
    some = "" if taken["taken"] == taken["leases"] else f" ({taken['taken']} of {taken['leases']})"
    return f"{max(taken['after_end_s']):.2f}{some}"


COSTS: Final = (
    "System",
    "Renewals per service core-s",
    "per database core-s",
    "Claims + reports per service core-s",
    "per database core-s",
    "Service is",
    "Renewals per flush",
    "Claims + reports per flush",
    "Commits per claim + report",
    "Flushed before it answered",
)


def _costs(systems: Systems) -> Iterable[Sequence[str]]:
    for one in systems.values():
        if rates := one.get("rates"):
            loops = [rates.get(loop) for loop in ("renew closed", "cycle closed")]
            served = bool(rates["cycle closed"]["service_s"])
            flushed = all(loop["flushed"] for loop in loops if loop)
            yield (
                escape(one["about"]["title"]),
                *(
                    _per(loop, "done", cost)
                    for loop in loops
                    for cost in ("service_s" if served else "holder_s", "database_s")
                ),
                "a server" if served else "in the holder",
                *(_per(loop, "done", "flushes") for loop in loops),
                _per(loops[1], "commits", "done"),
                '<span class="good">yes</span>' if flushed else '<span class="bad">NO</span>',
            )


def _per(loop: Mapping[str, Any] | None, count: str, cost: str) -> str:
    return number(loop[count] / loop[cost]) if loop and loop[cost] else "-"


LOOPS: Final = {
    "renew closed": "Renewals/s, closed loop",
    "cycle closed": "Claims + reports/s, closed loop",
    "renew open": "Renewals, open loop",
    "cycle open": "Claims + reports, open loop",
}


def _plots(systems: Systems) -> str:
    measured = {name: one for name, one in systems.items() if one.get("rates")}
    if not measured:
        return ""
    drawn: list[str] = []
    for loop, title in LOOPS.items():
        told = {name: one["rates"][loop] for name, one in measured.items() if loop in one["rates"]}
        if not told:
            continue
        titles = [measured[name]["about"]["title"] for name in told]
        if loop.endswith("closed"):
            rates = [one["per_second"] for one in told.values()]
            drawn.append(plots.bars(dict(zip(titles, rates, strict=True)), title))
        else:
            curves = [one["due"]["curve"] for one in told.values()]
            palette = plots.colours(list(told))
            drawn.append(plots.curves(dict(zip(titles, curves, strict=True)), palette, title))
    return _side_by_side(drawn)


def _reclaims(systems: Systems) -> str:
    taken = {
        one["about"]["title"]: {
            name: max(told["after_end_s"], default=None)
            for name, told in one["failures"]["takeovers"].items()
        }
        for one in systems.values()
        if one.get("failures") and "takeovers" in one["failures"]
    }
    if not taken:
        return ""
    return _side_by_side([plots.reclaims(taken, FAILURES, "Taken over, s after the lease's end")])


def _side_by_side(drawn: Iterable[str]) -> str:
    return '<div class="plots">' + "".join(f"<figure>{svg}</figure>" for svg in drawn) + "</div>"
