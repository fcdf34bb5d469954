"""The terminal and the browser of a device login, each written on its own, understand each other."""

import pytest
from cryptography.exceptions import InvalidTag

from tests.fakes.login_browser import sealed_for
from tests.fakes.login_terminal import Party


def test_what_the_browser_seals_the_terminal_opens() -> None:
    terminal = Party()
    sealed = sealed_for(terminal.public_key, "a token")
    opened = terminal.decrypt(sealed["ciphertext"], sealed["nonce"], sealed["dashboard_public_key"])

    assert opened == "a token"


def test_nobody_else_opens_it() -> None:
    sealed = sealed_for(Party().public_key, "a token")

    with pytest.raises(InvalidTag):
        Party().decrypt(sealed["ciphertext"], sealed["nonce"], sealed["dashboard_public_key"])
