"""What a trial is to do, made from the command line before anything is started."""

import enum
import secrets
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

from sexton_actors.manifest.model import Manifest, Runtime, WebhookTrigger
from sexton_actors.webhooks.trigger_secrets import SECRET_FIELD, secrets_of
from sexton_cli.demo.model import NO_KEY, PROVIDERS, Model
from sexton_cli.exits import CONFIG, USAGE, Fault
from sexton_cli.manifests import Files
from sexton_cli.model_script import Turn
from sexton_runner.settings import SandboxTier

MAX_EVENT_BYTES: Final = 4 * 1024 * 1024
"""More than a server takes, so that it is the server that says so."""
SCRIPTED: Final = "anthropic"
"""A scripted model speaks this provider's protocol where the agent names none."""


class Approval(enum.Enum):
    """Who answers when the agent asks a person."""

    ASK = "ask"
    APPROVE = "approve"
    DENY = "deny"


class Wake(NamedTuple):
    """What wakes the agent: a delivery for one of its triggers, or without one a person's message.

    Only a message brings files.
    """

    trigger: WebhookTrigger | None
    event_type: str | None
    content: bytes
    files: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """One trial. Secrets stay out of ``repr``."""

    files: Files
    manifest: Manifest
    wake: Wake
    approval: Approval
    sandbox: SandboxTier
    wall_s: float
    credentials: Mapping[str, Mapping[str, Any]] = field(repr=False)
    model: Model | None = field(repr=False)
    script: tuple[Turn, ...] | None = None
    runner_log: Path | None = None
    out: Path | None = None
    """Where the files of the run are kept; None: they end with the server."""

    @property
    def signing_secret(self) -> str | None:
        """What the delivery is signed with; None where its trigger does not sign."""
        trigger = self.wake.trigger
        if trigger is None or trigger.signature is None:
            return None
        return secrets_of(self.credentials[trigger.signature.secret_ref])[-1]


def wake_of(
    manifest: Manifest,
    event: Path | None,
    message: str | None,
    source: str | None,
    files: tuple[Path, ...] = (),
) -> Wake:
    """Choose the trigger; without ``source`` it is the agent's first webhook trigger. Raises Fault."""
    wake = _wake_of(manifest, event, message, source)
    if files and wake.trigger is not None:
        raise Fault("a webhook brings no files", "Wake the agent with --message.", status=USAGE)
    for file in files:
        if not file.is_file():
            raise Fault(f"{file} is no file", "Name a file that can be read.", status=USAGE)
    return wake._replace(files=files)


def _wake_of(manifest: Manifest, event: Path | None, message: str | None, source: str | None) -> Wake:
    if (event is None) == (message is None):
        raise Fault("say what wakes the agent", "Give either --event FILE or --message TEXT.", status=USAGE)
    if message is not None:
        return Wake(None, None, message.encode())
    label, _, event_type = (source or "").partition(":")
    content = _bytes_of(event) if event is not None else b""
    hooks = manifest.webhook_triggers
    if not hooks and source is None:
        return Wake(None, None, content)
    found = next((hook for hook in hooks if not label or hook.source == label), None)
    if found is None:
        sources = ", ".join(hook.source for hook in hooks) or "none"
        raise Fault(f"the agent has no trigger of source {label!r}", f"It has: {sources}.", status=USAGE)
    return Wake(found, event_type or None, content)


def with_signing_secrets(
    manifest: Manifest, given: Mapping[str, Mapping[str, Any]]
) -> dict[str, Mapping[str, Any]]:
    """The credentials, with a secret made up for each signature that none was given for."""
    found = dict(given)
    for trigger in manifest.webhook_triggers:
        if trigger.signature is not None and not secrets_of(found.get(trigger.signature.secret_ref, {})):
            # In the form of Standard Webhooks, which is as good a text as any to all others.
            made = f"whsec_{b64encode(secrets.token_bytes(24)).decode()}"
            name = trigger.signature.secret_ref
            found[name] = {**found.get(name, {}), SECRET_FIELD: made}
    return found


def model_for(
    manifest: Manifest, environ: Mapping[str, str], *, known: str | None, scripted: bool
) -> Model | None:
    """The model that is asked, and its key; ``known``: the provider of the agent's model, by the catalogue.

    A command needs none. Raises Fault.

    >>> model_for(Manifest("a", "", "1.0.0", "", ()), {"GROQ_API_KEY": "k"}, known="groq", scripted=False)
    Model(provider='groq', api_key='k')
    """
    if manifest.runtime is not Runtime.AGENT:
        return None
    named = manifest.provider or known
    if scripted:
        return Model(named or SCRIPTED, NO_KEY)
    for provider in (named,) if named else PROVIDERS:
        variable = provider.upper().replace("-", "_")
        key = environ.get(f"{variable}_API_KEY")
        if key or environ.get(f"SEXTON_{variable}_BASE_URL"):
            return Model(provider, key or NO_KEY)
    wanted = " or ".join(
        f"{one.upper().replace('-', '_')}_API_KEY" for one in ((named,) if named else PROVIDERS)
    )
    way_out = f"Set {wanted}, or give the model's answers with --model-script FILE."
    raise Fault("the agent needs a model, and there is no key of one", way_out, status=CONFIG)


def _bytes_of(file: Path) -> bytes:
    try:
        with file.open("rb") as opened:
            return opened.read(MAX_EVENT_BYTES)
    except OSError as fault:
        raise Fault(f"{file}: {fault.strerror}", status=USAGE) from fault
