"""The TypeScript client in a browser: it works from the server's own origin alone."""

import subprocess

import pytest
import trio

from tests.pages.screen import Screen
from tests.worlds.http import open_http_world
from tests.worlds.typescript_client import INSTALLED, SOURCES, install_client, need_node

CALLS = """
const [token, workspaceId, agent, elsewhere, done] = arguments;
(async () => {
  const { Sexton, isRefusal } = await import("/client/index.js");
  const sexton = new Sexton({ baseUrl: location.origin, token, workspaceId, retry: { attempts: 1 } });
  const told = [(await sexton.whoami()).kind];
  const { event_id } = await sexton.agents.send(agent, "hello");
  for await (const frame of sexton.agents.stream(agent, { lastEventId: "0" })) {
    told.push(`${frame.kind} ${frame.event_id === event_id}`);
    break;
  }
  await sexton.events.get(agent).catch((error) => told.push(isRefusal(error, "UZ-EVENT-001")));
  const other = new Sexton({ baseUrl: elsewhere, token, workspaceId, retry: { attempts: 1 } });
  await other.agents.send(agent, "hello").catch((error) => told.push(error.name));
  told.push((await sexton.agents.events(agent).take(9)).length);
  return told;
})().then(done, (error) => done(`${error}`));
"""


async def test_a_page_uses_the_client_from_the_servers_origin_alone(
    screen: Screen, tmp_path_factory: pytest.TempPathFactory
) -> None:
    modules = install_client(tmp_path_factory) / INSTALLED / "dist"
    async with open_http_world() as world:
        agent = await world.install()
        front = [need_node(), str(SOURCES / "test" / "front.mjs"), world.base_url, str(modules)]
        process = await trio.lowlevel.open_process(front, stdout=subprocess.PIPE)
        try:
            assert process.stdout is not None

            port = (await process.stdout.receive_some()).decode().strip()
            await screen.open(f"http://127.0.0.1:{port}/")
            workspace_id = str(world.installation.workspace_id)
            told = await screen.run_async(
                CALLS, world.api_key, workspace_id, agent["zombie_id"], world.base_url
            )
        finally:
            process.kill()
            await process.wait()

    assert told == ["api_key", "event_received true", True, "ConnectionError", 1]
    assert any("CORS" in complaint for complaint in screen.complaints)

    screen.complaints.clear()
