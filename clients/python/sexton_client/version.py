"""The version of the client, which is that of the product."""

from typing import Final

VERSION: Final = "0.1.0"
