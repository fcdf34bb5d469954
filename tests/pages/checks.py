"""What the tests of every page do: sign in, and look at what a page owes to its readers."""

from pathlib import Path
from typing import Any

from sexton_http.identity.browsers import Browsers
from tests.pages.screen import Screen
from tests.thorough import THOROUGH
from tests.worlds.http import HttpWorld

CONTRAST = """
const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
const read = (colour) => {
  canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
  return [...canvas.getImageData(0, 0, 1, 1).data];
};
const bright = ([r, g, b]) => {
  const part = (value) => {
    const c = value / 255;
    return c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  };
  return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
};
const behind = (node) => {
  for (let at = node; at; at = at.parentElement) {
    const colour = read(getComputedStyle(at).backgroundColor);
    if (colour[3] === 255) return colour;
  }
  return [255, 255, 255, 255];
};
const found = [];
for (const node of document.querySelectorAll("main *, header *")) {
  const own = [...node.childNodes].some((child) => child.nodeType === 3 && child.textContent.trim());
  if (!own || !node.checkVisibility() || node.disabled) continue;
  const pair = [bright(read(getComputedStyle(node).color)), bright(behind(node))];
  const [one, other] = pair.sort((a, b) => b - a);
  const ratio = (one + 0.05) / (other + 0.05);
  if (ratio < 4.5) found.push(`${node.tagName} ${node.textContent.trim()} ${ratio.toFixed(2)}`);
}
return found;
"""


AXE = (Path(__file__).parent / "axe" / "axe-4.12.1.min.js").read_text()
RULES = """
const done = arguments[arguments.length - 1];
axe.run(document, { runOnly: arguments[0] })
  .then((found) => done(found.violations.map((one) => ({
    id: one.id, help: one.help, where: one.nodes.map((node) => node.target.join(" ")),
  }))));
"""
ALL = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice")
WIDTHS = (390, 1400)


async def sign_in(screen: Screen, world: HttpWorld) -> None:
    await screen.open(await Browsers(world.ctx).offer(world.installation.user_id))
    await screen.press("Sign in")
    await screen.sees("Sign out")


async def check_page(screen: Screen, name: str) -> None:
    """What every page owes to its readers: one heading, a language, contrast, and no scrolling sideways."""
    assert await screen.run("return document.documentElement.lang") == "en"
    assert await screen.run("return document.querySelectorAll('h1').length") == 1
    assert await screen.run("return document.querySelectorAll('main').length") == 1
    for dark in (False, True):
        await _show(screen, name, dark=dark)
        assert await screen.run(CONTRAST) == [], f"dark: {dark}"
    for width in (320, 900):
        await screen.command(
            "Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=False
        )
        wide = await screen.run("return document.documentElement.scrollWidth <= window.innerWidth")
        assert wide, f"{name} must be scrolled sideways at {width} pixels"
        await _show(screen, f"{name}-{width}")
    await screen.command("Emulation.clearDeviceMetricsOverride")


async def _show(screen: Screen, name: str, *, dark: bool = False) -> None:
    """Show the page in a theme; a thorough run takes a picture of it, which costs more than all checks."""
    if THOROUGH:
        await screen.picture(name, dark=dark)
    else:
        await screen.show_theme(dark=dark)


async def violations(screen: Screen, rules: tuple[str, ...] = ALL) -> list[dict[str, Any]]:
    """What axe-core finds on the page as it is shown now, by tags of rules or by their names."""
    if not await screen.run("return Boolean(window.axe)"):
        await screen.run(AXE)
    found: list[dict[str, Any]] = await screen.run_async(RULES, list(rules))
    return found


async def check_console_page(screen: Screen, name: str) -> None:
    """A page in both themes and widths breaks no rule of WCAG 2.2 AA and is not scrolled sideways.

    axe-core looks at the dark one of the phone and at the light one of the desk; in a thorough run at all
    four, and a picture is taken of each.
    """
    assert await screen.run("return document.querySelectorAll('h1').length") == 1
    for width in WIDTHS:
        await screen.command(
            "Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False
        )
        assert await screen.run("return document.documentElement.scrollWidth <= window.innerWidth"), (
            name,
            width,
        )
        for dark in (False, True):
            if dark != (width == WIDTHS[0]) and not THOROUGH:
                continue  # Each theme and each width is looked through once.
            await _show(screen, f"{name}-{width}", dark=dark)
            found = await violations(screen, ALL)
            assert not found, (name, width, dark, found)
    await screen.command("Emulation.clearDeviceMetricsOverride")
