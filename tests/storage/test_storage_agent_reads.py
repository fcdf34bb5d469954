"""What is read of an agent that is known already."""

from msgspec.structs import replace

from sexton_storage.postgres import PostgresStorage
from tests.worlds.storage import StorageWorld


async def test_the_files_of_a_version_that_is_known_are_not_sent_again(
    postgres_storage: PostgresStorage,
) -> None:
    world = await StorageWorld(postgres_storage).found()
    agent = await world.agent()
    known = replace(agent, compiled={"tools": ["as", "it", "was", "read"]})

    found = await postgres_storage.zombies.load_with_pause(agent.id, known)

    assert found == (known, False), "what is known stands for what was not sent"
