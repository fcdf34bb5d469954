"""Dashboard, alerts and reference speak of what the server really shows, and of all of it."""

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import promql_parser
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from tests.worlds.http import open_http_world
from tests.worlds.promql import MONITORING, alerts, dashboard, expressions, selectors_of

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "how-to" / "answer-alerts.md"
ROW = re.compile(r"^\| `(\w+)` \| (\w+) \| (.*?) \| .+ \|$", re.MULTILINE)
OF_PROMETHEUS = frozenset({"instance", "job", "le"})
PROMTOOL = os.environ.get("SEXTON_PROMTOOL") or shutil.which("promtool")


class Family(NamedTuple):
    kind: str
    labels: frozenset[str]


def documented() -> dict[str, Family]:
    """The tables of the reference."""
    page = (DOCS / "reference" / "metrics.md").read_text(encoding="utf-8")
    return {
        name: Family(kind, frozenset(re.findall(r"`(\w+)`", labels)))
        for name, kind, labels in ROW.findall(page)
    }


async def shown() -> dict[str, Family]:
    """What a server shows after an event has come and was reported."""
    async with open_http_world() as world:
        _, token, lease = await world.working()
        await world.post(f"/v1/runners/me/leases/{lease['lease_id']}/renew", USAGE, token)
        text = (await world.get("/metrics")).text
    found = {}
    for family in text_string_to_metric_families(text):
        if family.name.startswith("sexton_") and not family.name.endswith("_created"):
            labels = frozenset(label for sample in family.samples for label in sample.labels)
            found[family.name] = Family(family.type, labels - OF_PROMETHEUS)
    return found


USAGE = {"input_tokens": 0, "cached_input_tokens": 0, "output_tokens": 0}


async def test_the_reference_tells_every_metric_with_its_kind_and_its_labels() -> None:
    told, seen = documented(), await shown()

    assert {name: family.kind for name, family in told.items()} == {
        name: family.kind for name, family in seen.items()
    }
    # A family that has not counted anything yet shows no labels.
    assert {name: told[name].labels for name, family in seen.items() if family.labels} == {
        name: family.labels for name, family in seen.items() if family.labels
    }


async def test_no_metric_has_an_id_for_a_label() -> None:
    labels = {label for family in (await shown()).values() for label in family.labels}
    assert [label for label in labels if label.endswith("_id") or label in {"id", "key"}] == []


# --- expressions --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("expression", sorted(set(expressions())))
def test_an_expression_asks_for_what_there_is(expression: str) -> None:
    selectors = list(selectors_of(promql_parser.parse(expression)))
    assert selectors

    for name, labels in selectors:
        family = family_of(name)
        assert family is not None, f"nothing shows {name}"
        assert labels <= family.labels | OF_PROMETHEUS, f"{name} has no {labels - family.labels}"


def family_of(name: str) -> Family | None:
    """By the name of a sample: histograms and counters have endings."""
    told = documented()
    if name.startswith("process_") or name == "up":
        return Family("gauge", frozenset())
    for ending, kind in (("_bucket", "histogram"), ("_total", "counter"), ("", "gauge")):
        family = told.get(name.removesuffix(ending))
        if name.endswith(ending) and family is not None and family.kind == kind:
            return family
    return None


def test_what_is_looked_for_would_be_found() -> None:
    (found,) = selectors_of(promql_parser.parse('sum by (a) (rate(nothing_total{b="c"}[1m])) > 1'))

    assert found == ("nothing_total", frozenset({"a", "b"}))
    assert family_of("nothing_total") is None
    assert family_of("sexton_events_queued_total") is None


# --- the files ----------------------------------------------------------------------------------------------


def test_every_alert_has_a_section_that_it_leads_to() -> None:
    headings = re.findall(r"^## (\w+)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    names = [rule["alert"] for rule in alerts()]

    assert headings == names
    assert [rule["annotations"]["runbook_url"] for rule in alerts()] == [
        f"how-to/answer-alerts.md#{name.lower()}" for name in names
    ]
    assert {rule["labels"]["severity"] for rule in alerts()} <= {"warning", "critical"}


def test_every_alert_is_tried_both_ways() -> None:
    tests = yaml.safe_load((MONITORING / "alerts.test.yml").read_text())["tests"]
    tried = {
        (case["alertname"], bool(case["exp_alerts"])) for test in tests for case in test["alert_rule_test"]
    }

    assert tried == {(rule["alert"], fires) for rule in alerts() for fires in (True, False)}


@pytest.mark.skipif(PROMTOOL is None, reason="promtool is not installed; SEXTON_PROMTOOL may name it")
def test_prometheus_own_tool_takes_the_rules_and_their_tests() -> None:
    for words in (("check", "rules", "alerts.yml"), ("test", "rules", "alerts.test.yml")):
        ended = subprocess.run(
            [str(PROMTOOL), *words], cwd=MONITORING, capture_output=True, text=True, check=False
        )
        assert ended.returncode == 0, ended.stdout + ended.stderr


def test_the_dashboard_can_be_imported_as_it_is() -> None:
    board = dashboard()
    assert (board["uid"], board["title"]) == ("sexton", "Sexton")
    # One that was exported with an id would overwrite a stranger's, and a fixed source exists nowhere else.
    assert "id" not in board
    assert {variable["name"] for variable in board["templating"]["list"]} == {"datasource", "instance"}

    ids = [panel["id"] for panel in board["panels"]]
    assert len(ids) == len(set(ids))

    for panel in board["panels"]:
        assert panel["type"] in {"row", "stat", "timeseries"}
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        for target in panel.get("targets", ()):
            assert target["datasource"] == {"type": "prometheus", "uid": "${datasource}"}


def test_no_two_panels_stand_in_the_same_place() -> None:
    taken: dict[tuple[int, int], str] = {}
    for panel in dashboard()["panels"]:
        place = panel["gridPos"]
        for x in range(place["x"], place["x"] + place["w"]):
            for y in range(place["y"], place["y"] + place["h"]):
                assert (x, y) not in taken, (panel["title"], taken[x, y])
                taken[x, y] = panel["title"]
