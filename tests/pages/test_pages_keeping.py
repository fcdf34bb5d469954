"""Keys and workspaces in a real browser, by keyboard alone: made, copied, changed, ended."""

import re
from collections.abc import AsyncIterator
from itertools import pairwise
from typing import Any

import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

from tests.pages.checks import check_page, sign_in
from tests.pages.screen import Screen
from tests.worlds.http import HttpWorld, open_http_world

KEY = re.compile(r"zmb_t_[0-9a-f]{64}")
MAX_TABS = 60
FOCUSED = """
const node = document.activeElement;
const outline = getComputedStyle(node);
return {
  name: node.getAttribute("aria-label") || (node.labels && node.labels[0] ? node.labels[0].textContent : "")
    || node.textContent.trim(),
  id: node.id, nowhere: node === document.body,
  outline: outline.outlineStyle !== "none" && parseFloat(outline.outlineWidth) >= 2,
};
"""
UNNAMED = """
return [...document.querySelectorAll("input:not([type=hidden]), select, textarea, button, summary, a")]
  .filter((node) => !(node.labels && node.labels.length) && !node.textContent.trim()
    && !node.getAttribute("aria-label"))
  .map((node) => node.outerHTML);
"""
HEADINGS = "return [...document.querySelectorAll('h1, h2, h3, h4')].map((node) => Number(node.tagName[1]));"
LOADED = "return performance.getEntriesByType('resource').map((entry) => entry.name);"


@pytest.fixture
async def world() -> AsyncIterator[HttpWorld]:
    async with open_http_world() as opened:
        yield opened


async def type_keys(screen: Screen, *keys: str) -> None:
    await screen.hands(lambda driver: ActionChains(driver).send_keys(*keys).perform())


async def chord(screen: Screen, letter: str) -> None:
    """Control and a letter."""
    await screen.hands(
        lambda driver: (
            ActionChains(driver).key_down(Keys.CONTROL).send_keys(letter).key_up(Keys.CONTROL).perform()
        )
    )


async def tab_to(screen: Screen, name: str) -> dict[str, Any]:
    """Press the tabulator until what has this name is in focus, as it must be seen to be."""
    for _ in range(MAX_TABS):
        await type_keys(screen, Keys.TAB)
        focused: dict[str, Any] = await screen.run(FOCUSED)
        # A page that has just come takes the first key for itself.
        seen = focused["outline"] or focused["nowhere"]
        assert seen, f"one does not see that {focused['name']!r} is in focus"
        if focused["name"] == name:
            return focused
    pytest.fail(f"the tabulator does not lead to {name!r}")


async def check_forms(screen: Screen, world: HttpWorld, name: str) -> None:
    """As ``check_page``, and what forms owe: a name for each control, headings in order, no inline script."""
    await check_page(screen, name)
    assert await screen.run(UNNAMED) == []
    levels = await screen.run(HEADINGS)
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in pairwise(levels)), levels
    loaded = await screen.run(LOADED)
    assert loaded
    assert all(url.startswith(f"{world.base_url}/") for url in loaded), loaded
    assert await screen.run("return [...document.scripts].every((script) => script.src)")


async def test_a_key_is_made_copied_revoked_and_deleted_by_keyboard(screen: Screen, world: HttpWorld) -> None:
    await sign_in(screen, world)
    await tab_to(screen, "API keys")
    await type_keys(screen, Keys.ENTER)
    await screen.sees("Create a key")
    assert await screen.run("return document.querySelector('nav [aria-current]').textContent") == "API keys"

    await check_forms(screen, world, "keys-none")
    await tab_to(screen, "Name")
    await type_keys(screen, "deploy-from-the-build-machine")
    await tab_to(screen, "Description")
    await type_keys(screen, "for <the> build & nobody else")
    await tab_to(screen, "Role")
    await type_keys(screen, "user")
    await tab_to(screen, "Create key")
    await type_keys(screen, Keys.ENTER)
    await screen.sees("This is the only time")
    assert (await screen.run(FOCUSED))["id"] == "key"

    await check_forms(screen, world, "key-made")
    await screen.command(
        "Emulation.setDeviceMetricsOverride", width=320, height=800, deviceScaleFactor=1, mobile=False
    )
    whole = "const at = document.querySelector('#key'); return at.scrollHeight <= at.clientHeight;"
    assert await screen.run(whole), "all of the key is seen on a narrow screen"

    await screen.command("Emulation.clearDeviceMetricsOverride")
    key = str(await screen.run("return document.querySelector('#key').value"))
    assert KEY.fullmatch(key)
    assert (await world.get("/v1/api-keys", key)).status_code == 200

    await screen.run("document.querySelector('#key').focus()")
    await chord(screen, "a")
    await chord(screen, "c")
    await tab_to(screen, "I have kept it")
    await type_keys(screen, Keys.ENTER)
    await screen.sees("Keys (2)")
    assert key not in await screen.source()

    await tab_to(screen, "Description")
    await chord(screen, "v")
    assert await screen.run("return document.querySelector('#description').value") == key, "it was copied"

    await screen.run("document.querySelector('#description').value = ''")
    await check_forms(screen, world, "keys-one")
    await tab_to(screen, "Revoke deploy-from-the-build-machine")
    await type_keys(screen, Keys.ENTER)
    await tab_to(screen, "Revoke for good: deploy-from-the-build-machine")
    await check_forms(screen, world, "keys-revoking")
    await type_keys(screen, Keys.ENTER)
    await screen.sees("revoked 20")
    await check_forms(screen, world, "keys-revoked")
    assert (await world.get("/v1/api-keys", key)).json()["error_code"] == "UZ-APIKEY-004"

    await tab_to(screen, "Delete deploy-from-the-build-machine")
    await type_keys(screen, Keys.ENTER)
    await screen.sees("Keys (1)")


async def test_a_key_that_was_shown_is_not_shown_again_by_going_back_or_loading_again(
    screen: Screen, world: HttpWorld
) -> None:
    await sign_in(screen, world)
    await screen.open(f"{world.base_url}/keys")
    await screen.click("#key_name")
    await type_keys(screen, "once", Keys.ENTER)
    await screen.sees("This is the only time")
    key = str(await screen.run("return document.querySelector('#key').value"))
    # Loading it again sends the form again, and that makes no second key.
    await screen.command("Page.reload")
    await screen.sees("There is a key named 'once'")
    assert key not in await screen.source()

    await check_forms(screen, world, "keys-refused")
    assert (await screen.run(FOCUSED))["id"] == "key_name"
    assert [text for text in screen.complaints if "409" not in text] == []

    screen.complaints.clear()
    await screen.click("#key_name")
    await chord(screen, "a")
    await type_keys(screen, "twice", Keys.ENTER)
    await screen.sees("This is the only time")
    second = str(await screen.run("return document.querySelector('#key').value"))
    await screen.press("I have kept it")
    await screen.sees("Keys (3)")
    await screen.hands(lambda driver: driver.back())
    assert "Keys (3)" not in await screen.source(), "it did go back"

    await screen.picture("gone-back")
    assert second not in await screen.source()
    assert len(world.memory.tables.api_keys) == 3, "the first start's and these two"

    await screen.open("about:blank")
    assert [text for text in screen.complaints if "ERR_CACHE_MISS" not in text] == []

    screen.complaints.clear()


async def test_a_workspace_is_made_renamed_paused_and_resumed_by_keyboard(
    screen: Screen, world: HttpWorld
) -> None:
    await sign_in(screen, world)
    await tab_to(screen, "Workspaces")
    await type_keys(screen, Keys.ENTER)
    await screen.sees("Create a workspace")
    await tab_to(screen, "Name")
    await type_keys(screen, "laboratory", Keys.ENTER)
    await screen.sees("Workspaces (2)")
    await check_forms(screen, world, "workspaces")
    await tab_to(screen, "Pause laboratory")
    await type_keys(screen, Keys.ENTER)
    await screen.sees("paused")
    await tab_to(screen, "Rename laboratory")
    await type_keys(screen, Keys.ENTER)
    await tab_to(screen, "Name")
    await chord(screen, "a")
    await type_keys(screen, "default", Keys.ENTER)
    await screen.sees("There is a workspace named 'default'")
    assert (await screen.run(FOCUSED))["id"].startswith("name-")

    await check_forms(screen, world, "workspaces-taken")
    # That the answer was no is noted; nothing else.
    assert [text for text in screen.complaints if "409" not in text] == []

    screen.complaints.clear()
    await chord(screen, "a")
    await type_keys(screen, "greenhouse", Keys.ENTER)
    await screen.sees("greenhouse")
    await tab_to(screen, "Resume greenhouse")
    await type_keys(screen, Keys.ENTER)
    await screen.sees("Pause")
    kept = {row.name: row.paused for row in world.memory.tables.workspaces.values()}
    assert kept == {"default": False, "greenhouse": False}
