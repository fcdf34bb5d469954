"""What the shipped dashboard and alert rules ask Prometheus for."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import promql_parser
import yaml

MONITORING = Path(__file__).parents[2] / "docs" / "monitoring"


def alerts() -> list[dict[str, Any]]:
    rules: list[dict[str, Any]] = yaml.safe_load((MONITORING / "alerts.yml").read_text())["groups"][0][
        "rules"
    ]
    return rules


def dashboard() -> dict[str, Any]:
    found: dict[str, Any] = orjson.loads((MONITORING / "dashboard.json").read_bytes())
    return found


def expressions() -> Iterator[str]:
    for rule in alerts():
        yield rule["expr"]
    for panel in dashboard()["panels"]:
        for target in panel.get("targets", ()):
            # As Grafana puts them in.
            yield target["expr"].replace("$__rate_interval", "1m").replace("$instance", ".*")


def selectors_of(node: Any) -> Iterator[tuple[str, frozenset[str]]]:
    """Names that are asked for, each with the labels that are matched or grouped by."""
    groups: frozenset[str] = frozenset()
    match node:
        case promql_parser.VectorSelector():
            yield str(node.name), frozenset(matcher.name for matcher in node.matchers.matchers)
        case promql_parser.MatrixSelector():
            yield from selectors_of(node.vector_selector)
        case promql_parser.AggregateExpr():
            groups = frozenset(node.modifier.labels) if node.modifier else groups
            yield from ((name, labels | groups) for name, labels in selectors_of(node.expr))
        case promql_parser.BinaryExpr():
            yield from selectors_of(node.lhs)
            yield from selectors_of(node.rhs)
        case promql_parser.Call():
            for argument in node.args:
                yield from selectors_of(argument)
        case promql_parser.ParenExpr():
            yield from selectors_of(node.expr)
        case _:
            assert isinstance(node, promql_parser.NumberLiteral), node
