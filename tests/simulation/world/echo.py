"""A small system to try a world on: clients that count at a server, and call again until they are answered.

Run as a program it prints the digest of the life of one seed.
"""

import sys
from dataclasses import dataclass, field

import trio

from tests.simulation.world.run import World, run

PORT = 7
CLIENTS = 4
ADDITIONS = 3


@dataclass
class Shop:
    """What survives the server, as a database would."""

    total: int = 0
    done: dict[str, int] = field(default_factory=dict)
    """By client: how many of its additions were acknowledged."""
    guarded: bool = True
    """Without it two additions at once may lose one: the planted race."""
    turn: trio.Lock = field(default_factory=trio.Lock)


async def serve(shop: Shop) -> None:
    """Add one for each line that comes."""

    async def add(stream: trio.SocketStream) -> None:
        async for line in stream:
            if shop.guarded:
                async with shop.turn:
                    await _add_one(shop)
            else:
                await _add_one(shop)
            await stream.send_all(line)

    await trio.serve_listeners(add, await trio.open_tcp_listeners(PORT, host="0.0.0.0"))


async def _add_one(shop: Shop) -> None:
    before = shop.total
    await trio.sleep(0.001)
    shop.total = before + 1


async def add_some(shop: Shop, name: str) -> None:
    """Have one added several times over one connection, and over another when that breaks."""
    shop.done[name] = 0
    while shop.done[name] < ADDITIONS:
        try:
            with trio.fail_after(5):
                async with await trio.open_tcp_stream("server", PORT) as stream:
                    while shop.done[name] < ADDITIONS:
                        await stream.send_all(b"one")
                        if not await stream.receive_some():
                            break
                        shop.done[name] += 1
        except (OSError, trio.BrokenResourceError, trio.TooSlowError):
            await trio.sleep(0.5)


async def a_day(world: World, shop: Shop | None = None, *, faults: bool = True) -> Shop:
    """Let all clients be served, while the server dies, freezes and is cut off."""
    shop = shop or Shop()
    machine = world.machine("server")
    server = machine.start(serve, shop)
    for number in range(CLIENTS):
        name = f"client-{number}"
        world.machine(name).start(add_some, shop, name)
    if faults:
        await trio.sleep(world.rng.uniform(0.002, 0.01))
        server.crash()
        shop.turn = trio.Lock()
        await trio.sleep(world.rng.uniform(0, 2))
        server = machine.start(serve, shop)
        await trio.sleep(world.rng.uniform(0.5, 2))
        server.freeze()
        world.network.cut(world.machine("client-0"), machine)
        await trio.sleep(world.rng.uniform(1, 20))
        world.network.heal()
        server.thaw()
    while sum(shop.done.values()) < CLIENTS * ADDITIONS:
        await trio.sleep(0.1)
    return shop


def main() -> None:
    life = run(a_day, seed=int(sys.argv[1]))
    sys.stdout.write(f"{life.sha256}\n")


if __name__ == "__main__":
    main()
