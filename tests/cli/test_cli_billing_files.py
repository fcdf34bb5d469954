"""The operator's files of prices and plans: what may stand in them, and what is said of mistakes."""

import os
import re
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from sexton_actors.plans import DEFAULT_PLANS, DEFAULT_TERMS
from sexton_cli.billing_file import load_terms, read_terms
from sexton_cli.catalogue import load_catalogue, read_catalogue
from sexton_cli.exits import StartupFault
from sexton_storage.records.tenants import PlanTier
from tests.house.survey import ROOT
from tests.thorough import amount

ROW = {
    "id": "m",
    "provider": "p",
    "context_cap_tokens": 1000,
    "input_nanos_per_mtok": 3,
    "cached_input_nanos_per_mtok": 2,
    "output_nanos_per_mtok": 1,
}


def file_of(*rows: dict[str, object], version: str = "2026-11-20") -> bytes:
    return msgspec.json.encode({"version": version, "models": rows})


def test_the_catalogue_that_is_shipped_has_models_of_both_protocols(tmp_path: Path) -> None:
    shipped = load_catalogue(None, tmp_path)
    assert {"anthropic", "openai"} <= {model.provider for model in shipped.models}

    for model in shipped.models:
        assert model.cached_input_nanos_per_mtok < model.input_nanos_per_mtok < model.output_nanos_per_mtok
        assert model.context_cap_tokens >= 100_000


def test_the_file_of_the_data_folder_takes_its_place_and_a_named_one_before_that(tmp_path: Path) -> None:
    (tmp_path / "catalogue.json").write_bytes(file_of({**ROW, "id": "mine"}))
    named = tmp_path / "named.json"
    named.write_bytes(file_of(version="2027-01-01"))

    assert [model.id for model in load_catalogue(None, tmp_path).models] == ["mine"]
    assert load_catalogue(named, tmp_path).version == "2027-01-01"


def blocks_of(page: str, kind: str) -> list[str]:
    text = (ROOT / "docs" / "how-to" / f"{page}.md").read_text(encoding="utf-8")
    return re.findall(rf"^```{kind}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def test_the_files_of_the_how_tos_are_taken_as_they_stand() -> None:
    [prices] = blocks_of("set-prices-and-plans", "json")
    [plans] = blocks_of("set-prices-and-plans", "toml")
    [defaults] = blocks_of("watch-the-balance", "toml")
    terms = read_terms(plans)

    assert [model.id for model in read_catalogue(prices.encode()).models] == ["claude-sonnet-4-5"]
    assert terms.plans[PlanTier.FREE].events_per_day == 500
    assert terms.plans[PlanTier.FREE] != DEFAULT_PLANS[PlanTier.FREE]
    assert read_terms(defaults) == DEFAULT_TERMS, "the page says of both numbers that they are the default"


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"", "truncated"),
        (b"[]", "object"),
        (file_of(version="today"), "version"),
        (file_of({**ROW, "input_nanos_per_mtok": -1}), "input_nanos_per_mtok"),
        (file_of({**ROW, "output_nanos_per_mtok": 10**13}), "output_nanos_per_mtok"),
        (file_of({**ROW, "input_nanos_per_mtok": 0.5}), "int"),
        (file_of({**ROW, "colour": "red"}), "colour"),
        (file_of({key: value for key, value in ROW.items() if key != "provider"}), "provider"),
        (file_of(ROW, ROW), "m stands there twice"),
    ],
)
def test_a_mistake_in_a_catalogue_is_named(raw: bytes, said: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=said):
        read_catalogue(raw)
    file = tmp_path / "c.json"
    file.write_bytes(raw)
    with pytest.raises(StartupFault) as fault:
        load_catalogue(file, tmp_path)

    assert str(file) in str(fault.value)


def test_plans_are_as_the_file_says_and_else_as_they_were(tmp_path: Path) -> None:
    assert load_terms(None, tmp_path) is DEFAULT_TERMS

    (tmp_path / "billing.toml").write_text(
        """
[plans.free]
events_per_day = 50
tools = ["http_*"]
runtimes = ["agent"]
workspaces = "unlimited"
crons = 7
event_days = 90

[plans.pro]
tools = "all"

[free_trial]
ends = 2027-01-01T00:00:00Z
dollars_per_hour = 0.036
"""
    )
    terms = load_terms(None, tmp_path)
    free = replace(DEFAULT_PLANS[PlanTier.FREE], crons=7, event_days=90)
    assert free.credentials == 100
    assert terms.plans[PlanTier.FREE] == replace(
        free, workspaces=None, events_per_day=50, tools=("http_*",), runtimes=("agent",)
    )
    assert terms.plans[PlanTier.PRO] == DEFAULT_PLANS[PlanTier.PRO]
    assert (terms.free_trial_ends_ms, terms.free_trial_nanos_per_sec) == (1_798_761_600_000, 10_000)
    assert terms.run_rate(1_798_761_599_999) == 10_000
    assert terms.run_rate(1_798_761_600_000) == 100_000


def test_the_first_tenant_has_no_limit_unless_the_file_sets_one() -> None:
    assert (DEFAULT_TERMS.first_tenant_nanos, DEFAULT_TERMS.sign_in_nanos) == (None, 5_000_000_000)

    terms = read_terms("[credit]\nfirst_tenant_dollars = 2.5\nsign_in_dollars = 'unlimited'")
    assert (terms.first_tenant_nanos, terms.sign_in_nanos) == (2_500_000_000, None)
    assert read_terms("").first_tenant_nanos is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[credit]\nfirst_tenant_dollars = -1", "first_tenant_dollars"),
        ("[credit]\nsign_in_dollars = 'much'", "sign_in_dollars"),
        ("[plans.free", "plans.free|Expected"),
        ("[plans.gold]", "gold"),
        ("[plans.free]\nevents = 1", "events"),
        ("[plans.free]\nevents_per_day = -1", "events_per_day"),
        ("[plans.free]\nrequests_per_second = 0", "requests_per_second"),
        ("[plans.free]\nworkspaces = 'many'", "workspaces"),
        ("[plans.free]\nruntimes = ['rust']", "rust"),
        ("[free_trial]\nends = 2027-01-01T00:00:00", "time zone"),
        ("[free_trial]", "ends"),
    ],
)
def test_a_mistake_in_the_plans_is_named(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=said):
        read_terms(text)
    file = tmp_path / "b.toml"
    file.write_text(text)
    with pytest.raises(StartupFault, match=r"b\.toml"):
        load_terms(file, tmp_path)


STARTS = amount(1, 5, variable="SEXTON_WRONG_STARTS")
CONFIG = 78


def test_a_mistake_ends_every_start_with_status_78(tmp_path: Path) -> None:
    (tmp_path / "billing.toml").write_text('[plans.free]\nrequests_per_second = "fast"\n')
    words = [sys.executable, "-m", "sexton_cli.main", "serve", "--data", str(tmp_path), "--port", "0"]
    # With an allocator that checks its blocks: what went wrong now and then goes wrong each time.
    started = [
        subprocess.Popen(words, stderr=subprocess.DEVNULL, env=os.environ | {"PYTHONMALLOC": "debug"})
        for _ in range(STARTS)
    ]
    statuses = [one.wait() for one in started]

    assert statuses == [CONFIG] * STARTS
