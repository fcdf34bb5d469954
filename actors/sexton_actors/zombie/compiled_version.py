"""A configuration version that makes an agent."""

import msgspec

from sexton_actors.manifest.model import Manifest
from sexton_storage.records.configs import ConfigVersion


class Compiled(msgspec.Struct, frozen=True):
    """A version that can be activated, and what it says."""

    config: ConfigVersion
    manifest: Manifest
