"""How the server was set up: every option with its value and where it comes from."""

from typing import Literal

import msgspec

from sexton_http.bodies.shapes import Shape
from sexton_http.gateway.call import Call
from sexton_http.gateway.operations import Auth, NoBody, NoQuery, operation
from sexton_http.identity.context import VERSION

TAG = "Service"


class SettingItem(Shape):
    name: str
    """The option of `sexton serve` and `sexton up`, as `--max-in-flight`."""
    variable: str
    """The environment variable that sets it, too; empty: none does."""
    value: str
    """As text. Of a secret only `set` or nothing."""
    source: Literal["option", "environment", "default"]
    says: str


class SettingList(Shape):
    version: str
    items: list[SettingItem]


@operation("GET", "/v1/admin/settings", tag=TAG, auth=Auth.PLATFORM)
async def list_settings(call: Call[NoBody, NoQuery]) -> SettingList:
    """List every option of the server: its value, where the value comes from, and what it is for.

    Options are changed where the server is started. The value of a secret is not shown.
    """
    rows = [msgspec.structs.asdict(option) for option in call.ctx.options]
    return SettingList(VERSION, msgspec.convert(rows, list[SettingItem]))
