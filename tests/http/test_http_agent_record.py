"""An agent's record tells what its files say, in their own words, and what they leave to the service."""

import pytest

from tests.http.agent_life import at, skill
from tests.http.house import House

TRIGGERS = """\
---
name: doctor
triggers:
  - {type: webhook, source: github, credential_name: hook}
  - {type: webhook, source: slack, signature: {secret_ref: hook}}
  - {type: webhook, source: linear, signature: {secret_ref: hook, header: X-Other, prefix: "l="}}
  - {type: webhook, source: svix, signature: {secret_ref: hook}}
  - {type: webhook, source: shop, signature: {secret_ref: hook, header: X-Shop}}
  - {type: webhook, source: doorbell}
  - {type: cron, schedule: "0 5 * * *"}
---
"""


async def test_the_record_shows_where_each_source_signs(house: House) -> None:
    files = {"source_markdown": skill(), "trigger_markdown": TRIGGERS}
    answer = await house.post(f"{house.ws}/zombies", files)
    assert answer.status_code == 201, answer.text
    record = (await house.get(at(house, answer.json()))).json()
    [item] = (await house.get(f"{house.ws}/zombies")).json()["items"]
    assert item["triggers"] == record["triggers"]
    shown = [trigger.get("signature") for trigger in record["triggers"]]
    names = ("header", "prefix", "ts_header")
    assert [signature and tuple(signature[name] for name in names) for signature in shown] == [
        ("x-hub-signature-256", "sha256=", None),
        ("x-slack-signature", "v0=", "x-slack-request-timestamp"),
        ("x-other", "l=", None),
        ("svix-signature", "v1,", "svix-timestamp"),
        ("x-shop", "", None),
        None,
        None,
    ]
    assert {signature["secret_ref"] for signature in shown if signature} == {"hook"}


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ("", None),
        ("budget: {daily_dollars: 2.5}", (2.5, None, 2_500_000_000, None)),
        ("budget: {daily_dollars: 1, monthly_dollars: 20}", (1, 20, 10**9, 20 * 10**9)),
    ],
)
async def test_the_record_shows_the_budget_as_it_was_declared(
    house: House, config: str, expected: tuple[float | None, ...] | None
) -> None:
    zombie = await house.install(config=config)
    budget = (await house.get(at(house, zombie))).json()["budget"]
    names = ("daily_dollars", "monthly_dollars", "daily_nanos", "monthly_nanos")
    assert budget == (expected and dict(zip(names, expected, strict=True)))
