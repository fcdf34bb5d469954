"""Where more than its own machine reaches a server, its numbers are told to whoever has the token."""

from typing import Any

import pytest

from tests.worlds.http import open_http_world


@pytest.mark.parametrize(
    ("settings", "statuses"),
    [
        ({}, [200, 200, 200]),
        ({"open_metrics": False, "metrics_token": "0123"}, [401, 401, 200]),
        ({"open_metrics": False}, [401, 401, 401]),
    ],
    ids=["on loopback", "elsewhere", "elsewhere without a token"],
)
async def test_metrics_need_their_token_elsewhere(settings: dict[str, Any], statuses: list[int]) -> None:
    async with open_http_world(**settings) as world:
        answers = [await world.get("/metrics", token) for token in (None, world.api_key, "0123")]

    assert [answer.status_code for answer in answers] == statuses
    assert {answer.json()["error_code"] for answer in answers if answer.status_code != 200} <= {"UZ-AUTH-002"}
