"""Fixtures of the actors' tests."""

from collections.abc import AsyncIterator

import pytest
from trio.testing import MockClock

from tests.actors.plant import Plant, open_plant


@pytest.fixture
async def plant(autojump_clock: MockClock) -> AsyncIterator[Plant]:
    """One node, empty but for a tenant.

    A test that uses it asks for ``autojump_clock`` too, or trio runs on real time.
    """
    async with open_plant() as opened:
        yield opened
