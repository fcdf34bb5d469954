"""What a run may have of its host, as an author asks for it, and what that needs of a runner."""

import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Final, NamedTuple

import msgspec

from sexton_actors.manifest.fields import Fields
from sexton_actors.manifest.known_names import WORKSPACE_SERVERS, mcp_server
from sexton_actors.manifest.model import Manifest, Resources, Runtime
from sexton_actors.manifest.nodes import Scalar
from sexton_storage.offers import at_least

KEYS: Final = frozenset({"cpu", "memory", "pids", "disk", "wall"})
CPU_MILLIS: Final = (50, 64_000)
PIDS: Final = (8, 32_768)
DISK_ALONE_MIB: Final = 512
"""What a run may write without asking for memory too."""
_CPU: Final = re.compile(r"(?:0|[1-9][0-9]{0,2})(?:\.[0-9]{1,3})?")
_SIZE: Final = re.compile(r"([1-9][0-9]{0,8})(MiB|GiB)")
_TIME: Final = re.compile(r"([1-9][0-9]{0,6})([smh])")
_MIB: Final = {"MiB": 1, "GiB": 1024}
_SECONDS: Final = {"s": 1, "m": 60, "h": 3600}


class _Scale(NamedTuple):
    """How a number with a unit is written, and its bounds."""

    form: re.Pattern[str]
    units: Mapping[str, int]
    unit: str
    """What the bounds are in."""
    least: int
    most: int
    example: str


MEMORY: Final = _Scale(_SIZE, _MIB, "MiB", 64, 262_144, "`512MiB` or `2GiB`")
DISK: Final = _Scale(_SIZE, _MIB, "MiB", 1, 262_144, "`256MiB` or `1GiB`")
WALL: Final = _Scale(_TIME, _SECONDS, "s", 1, 43_200, "`90s`, `30m` or `2h`")


def read_resources(fields: Fields | None) -> Resources:
    """Read the mapping; what is beyond the fleet's bounds is a problem that names the bound."""
    if fields is None:
        return Resources()
    fields.only(KEYS)
    found = Resources(
        cpu_millis=_cpu(fields),
        memory_mib=_scaled(fields, "memory", MEMORY),
        pids=_pids(fields),
        disk_mib=_scaled(fields, "disk", DISK),
        wall_s=_scaled(fields, "wall", WALL),
    )
    _files_fit(found, fields)
    return found


def _files_fit(found: Resources, fields: Fields) -> None:
    room = DISK_ALONE_MIB if found.memory_mib is None else found.memory_mib
    if found.disk_mib is not None and found.disk_mib > room:
        given = "without `memory`" if found.memory_mib is None else f"with `memory: {found.memory_mib}MiB`"
        fields.wrong("disk", f"must be at most {room}MiB {given}: files are kept in the run's memory")


def _plain(fields: Fields, key: str) -> str | None:
    if not fields.is_given(key, required=False):
        return None
    node = fields.node(key)
    return node.text if isinstance(node, Scalar) else ""


def _cpu(fields: Fields) -> int | None:
    text = _plain(fields, "cpu")
    if text is None:
        return None
    least, most = CPU_MILLIS
    if not _CPU.fullmatch(text):
        fields.wrong("cpu", "must be a number of processors such as `2` or `0.5`, with at most 3 decimals")
        return None
    millis = int(Decimal(text) * 1000)
    if not least <= millis <= most:
        fields.wrong("cpu", f"must be from {least / 1000:g} to {most / 1000:g} processors")
        return None
    return millis


def _pids(fields: Fields) -> int | None:
    return None if "pids" not in fields else fields.integer("pids", least=PIDS[0], most=PIDS[1])


def _scaled(fields: Fields, key: str, scale: _Scale) -> int | None:
    text = _plain(fields, key)
    if text is None:
        return None
    found = scale.form.fullmatch(text)
    if found is None:
        fields.wrong(key, f"must be a whole number with its unit, such as {scale.example}")
        return None
    amount = int(found[1]) * scale.units[found[2]]
    if not scale.least <= amount <= scale.most:
        fields.wrong(key, f"must be from {scale.least}{scale.unit} to {scale.most}{scale.unit}")
        return None
    return amount


def needs_of(manifest: Manifest) -> tuple[str, ...]:
    """Give all that an agent needs of a runner: its tags, image, bounds and MCP servers."""
    servers = _servers(manifest) if manifest.runtime is Runtime.AGENT else ()
    image = () if manifest.image is None else (f"image:{manifest.image}",)
    return tuple(dict.fromkeys((*manifest.required_tags, *image, *needs(manifest.resources), *servers)))


def _servers(manifest: Manifest) -> Iterator[str]:
    for tool in manifest.tools:
        if (server := mcp_server(tool)) is not None:
            yield WORKSPACE_SERVERS if server in manifest.mcp_servers else f"mcp:{server}"


def needs(resources: Resources) -> Iterator[str]:
    """Say what a runner has to offer to take such runs.

    >>> list(needs(Resources(cpu_millis=500, memory_mib=2048, wall_s=90)))
    ['cpu>=0.5', 'memory>=2048MiB', 'wall>=90s']
    """
    for measure, amount in _measures(resources):
        if amount is not None:
            yield at_least(measure, amount)


def _measures(resources: Resources) -> Iterator[tuple[str, float | None]]:
    yield "cpu", None if resources.cpu_millis is None else resources.cpu_millis / 1000
    yield "memory", resources.memory_mib
    yield "pids", resources.pids
    yield "disk", resources.disk_mib
    yield "wall", resources.wall_s


def policy_of(resources: Resources) -> dict[str, int]:
    """Give what was asked for as a lease tells it: by key, nothing that was not.

    >>> policy_of(Resources(pids=64))
    {'pids': 64}
    """
    asked: dict[str, int | None] = msgspec.structs.asdict(resources)
    return {key: value for key, value in asked.items() if value is not None}
