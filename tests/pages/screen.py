"""What a person does with a browser, from a trio test: the driver waits in threads."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import trio
from selenium.common.exceptions import TimeoutException, WebDriverException
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.command import Command
from selenium.webdriver.support.ui import WebDriverWait

from tests.patience import PATIENCE_S

T = TypeVar("T")
FAR = "sexton.test"
"""A name that leads here, and that the browser takes for another machine's: no secure context over HTTP."""

STILL: Final = {"name": "prefers-reduced-motion", "value": "reduce"}
"""What fades in while its contrast is measured has too little."""


class Screen:
    """One window. ``complaints`` are the browser's own, on its console: errors, refusals by the policy."""

    def __init__(self, driver: Chrome, folder: Path) -> None:
        self.driver = driver
        self.folder = folder
        self.complaints: list[str] = []

    def forget(self) -> None:
        """Leave no cookie and no page behind."""
        self._listen()
        self.driver.get("about:blank")
        self.driver.execute_cdp_cmd("Network.clearBrowserCookies", {})

    async def open(self, url: str) -> None:
        await self._do(lambda: self.driver.get(url))

    async def click(self, selector: str) -> None:
        await self._do(lambda: self.driver.find_element(By.CSS_SELECTOR, selector).click())

    async def press(self, label: str) -> None:
        """The button or link of that name."""
        path = f"//*[self::button or self::a][normalize-space()='{label}']"

        def enter(driver: Chrome) -> bool:
            # By the key, since a live part may move or be made again between the look and a click.
            driver.find_element(By.XPATH, path).send_keys(Keys.ENTER)
            return True

        waiting = WebDriverWait(self.driver, PATIENCE_S, ignored_exceptions=[WebDriverException])
        await self._do(lambda: waiting.until(enter))

    async def sees(self, words: str) -> str:
        """Wait until the page shows these words; gives all that it shows."""

        def look(driver: Any) -> str | None:
            shown: str = driver.find_element(By.TAG_NAME, "body").text
            return shown if words in shown else None

        # The page may go while it is looked at, which the driver has more than one word for: another comes.
        waiting = WebDriverWait(self.driver, PATIENCE_S, 0.05, [WebDriverException])
        try:
            return await self._do(lambda: str(waiting.until(look)))
        except TimeoutException:
            shown = await self.text("body")
            told = f"{await self.url()} does not show {words!r}: {shown} {self.complaints}"
            raise AssertionError(told) from None

    async def hands(self, work: Callable[[Chrome], Any]) -> None:
        """What only the driver can do: keys pressed, going back."""
        await self._do(lambda: work(self.driver))

    async def source(self) -> str:
        return await self._do(lambda: str(self.driver.page_source))

    async def text(self, selector: str) -> str:
        waiting = WebDriverWait(self.driver, PATIENCE_S, ignored_exceptions=[WebDriverException])
        return await self._do(
            lambda: str(waiting.until(lambda driver: driver.find_element(By.CSS_SELECTOR, selector)).text)
        )

    async def run(self, script: str, *values: Any) -> Any:
        return await self._do(lambda: self.driver.execute_script(script, *values))

    async def run_async(self, script: str, *values: Any) -> Any:
        """The script's last argument is what it calls back with its result."""
        return await self._do(lambda: self.driver.execute_async_script(script, *values))

    async def url(self) -> str:
        return await self._do(lambda: self.driver.current_url)

    async def command(self, name: str, **values: Any) -> Any:
        """Of the browser's own protocol."""
        return await self._do(lambda: self.driver.execute_cdp_cmd(name, values))

    async def show_theme(self, *, dark: bool = False) -> None:
        """Show the page in its light or its dark theme."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        await self.command("Emulation.setEmulatedMedia", features=[scheme, STILL])

    async def picture(self, name: str, *, dark: bool = False) -> Path:
        await self.show_theme(dark=dark)
        path = self.folder / f"{name}{'-dark' if dark else ''}.png"
        await self._do(lambda: self.driver.save_screenshot(str(path)))
        return path

    async def _do(self, work: Callable[[], T]) -> T:
        done = await trio.to_thread.run_sync(work)
        await trio.to_thread.run_sync(self._listen)
        return done

    def _listen(self) -> None:
        entries: list[dict[str, Any]] = self.driver.execute(Command.GET_LOG, {"type": "browser"})["value"]
        self.complaints += [str(entry["message"]) for entry in entries]
