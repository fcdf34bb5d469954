"""The page of one version of an agent's files: what it would change, and the way back to it."""

from typing import Final

import msgspec

from sexton_http.answers import Answer
from sexton_http.gateway.call import Call
from sexton_http.gateway.operations import NoBody
from sexton_http.pages.console import console_operation, show_page
from sexton_http.pages.form_actions import act, may
from sexton_http.pages.templates.frame import Frame
from sexton_http.routes.harness import VersionCompared, VersionText, activate_harness, get_harness_version
from sexton_http.routes.zombies import get_zombie
from sexton_storage.records.configs import ConfigStatus

HERE: Final = "agents"
WAYS_BACK: Final = frozenset({ConfigStatus.SUPERSEDED, ConfigStatus.COMPILED})
"""Versions that can become the active one."""


@console_operation(HERE + "/{zombie_id}/versions/{config_version_id}", HERE, "Version")
async def show_version(call: Call[NoBody, VersionCompared], frame: Frame) -> Answer:
    """Show one version of an agent's files, how it differs from the active one, and the way back to it."""
    who = frame.signed_in
    agent = await act(call, who, get_zombie)
    version: VersionText = await act(call, who, get_harness_version, query=call.query)
    if version.agent_id != agent.zombie_id:
        other = msgspec.structs.replace(call, params={**call.params, "zombie_id": version.agent_id})
        agent = await act(other, who, get_zombie)
    return show_page(
        call,
        frame._replace(title=f"{agent.name}, version {version.version}"),
        "version",
        agent=agent,
        version=version,
        can_activate=version.status in WAYS_BACK,
        allowed=may(who, activate_harness),
    )
