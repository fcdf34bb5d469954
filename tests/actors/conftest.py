"""Fixtures of the actors' tests."""

from collections.abc import AsyncIterator

import pytest
from trio.testing import MockClock

from tests.worlds.actors import ActorsWorld, open_actors_world


@pytest.fixture
async def world(autojump_clock: MockClock) -> AsyncIterator[ActorsWorld]:
    """One node, empty but for a tenant.

    A test that uses it asks for ``autojump_clock`` too, or trio runs on real time.
    """
    async with open_actors_world() as opened:
        yield opened
