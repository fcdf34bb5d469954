"""A real Chromium, headless, one for all tests of the pages."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service

from tests.pages.screen import FAR, Screen
from tests.patience import PATIENCE_S

MISSING = (
    "The pages are tested in a real browser, and this machine has no {name}: "
    "install it ('apt-get install chromium chromium-driver' on Debian)."
)


def program(*names: str) -> str:
    for name in names:
        found = shutil.which(name)
        if found is not None:
            return found
    pytest.fail(MISSING.format(name=names[0]), pytrace=False)


@contextmanager
def open_chromium(profile: Path) -> Iterator[Chrome]:
    options = ChromeOptions()
    options.binary_location = program("chromium", "chromium-browser", "google-chrome")
    for argument in (
        "--headless=new",
        "--no-sandbox",  # The tests may run as root, whom Chromium's own sandbox does not take.
        "--disable-dev-shm-usage",
        "--disable-gpu",
        "--disable-background-networking",
        "--no-first-run",
        f"--host-resolver-rules=MAP {FAR} 127.0.0.1",
        "--window-size=900,800",
        f"--user-data-dir={profile}",
    ):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = Chrome(options=options, service=Service(program("chromedriver")))
    driver.set_script_timeout(PATIENCE_S)
    try:
        yield driver
    finally:
        driver.quit()


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    with open_chromium(tmp_path_factory.mktemp("chromium")) as driver:
        yield driver


@pytest.fixture
def screen(chromium: Chrome, tmp_path: Path) -> Iterator[Screen]:
    """A browser that is signed in nowhere; at the end it must have had nothing to complain of."""
    shown = Screen(chromium, tmp_path)
    shown.forget()
    yield shown
    during = len(shown.complaints)
    shown.forget()
    # A live page that is still open asks on, and the test's server may be gone before the page is.
    after = [one for one in shown.complaints[during:] if "net::ERR_CONNECTION_REFUSED" not in one]
    assert shown.complaints[:during] + after == []
