"""What readers may do to a server's memory, as the kernel counts it, beside what they ask for."""

import pytest

from bench import peaks, server
from bench.load import open_client
from bench.peaks import Process

READERS = 40
PART = 4
"""What an attack adds is to be less than what it asks for divided by this."""


async def test_who_asks_for_much_does_not_have_it_kept_for_him(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = READERS * peaks.MISSED / peaks.MIB
    for name, value in (("RECONNECTS", READERS), ("IDLERS", READERS), ("WEBHOOKS", 20), ("IDLE_S", 2.0)):
        monkeypatch.setattr(peaks, name, value)
    with open_client() as client:
        async with server.open_folder() as process:
            site = await process.start()
            [agent] = await server.make_agents(client, site, 1)
            await peaks.fill_stream(client, site, agent)
            await peaks.fill_history(client, site, agent)
            await peaks.warm(site, agent)
            added = {}
            for attack in (peaks.reconnect, peaks.idle, peaks.read_lists):
                memory = Process(process.pid)
                memory.forget()
                await attack(client, site, agent)
                added[attack.__name__] = memory.peak() - memory.before

    assert added["reconnect"] < asked / PART, added
    assert added["idle"] < asked / PART, added
    assert added["read_lists"] < peaks.PEOPLE * peaks.WEBHOOKS / PART, added
