"""Reads the triggers of a trigger file: what wakes the agent."""

import re
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from sexton_actors.manifest.fields import Fields
from sexton_actors.manifest.model import (
    DEFAULT_TOLERANCE_S,
    CronTrigger,
    Payload,
    Signature,
    WebhookTrigger,
)

MAX_TRIGGERS = 8
MAX_EVENTS = 16
MAX_EVENT_CHARS = 64
MIN_TOLERANCE_S = 30
MAX_TOLERANCE_S = 3_600
MAX_CRON_MESSAGE_CHARS = 8_192
MAX_HEADER_CHARS = 128

NATIVE_SOURCES = frozenset({"github", "slack", "linear", "stripe", "sentry", "svix", "standard-webhooks"})
"""Sources whose headers and prefixes are known: a signature needs no more than ``secret_ref``."""
MULTISIG_SOURCES = frozenset({"svix", "standard-webhooks"})
"""Reached by the multi-signature route, one address an agent for both."""
TIMELESS_SOURCES = frozenset({"github", "linear"})
"""They sign no time, whatever a header says."""
RESERVED_SOURCES = frozenset({"approval", "grant-approval"})
"""The addresses of triggers that are taken."""

CREDENTIAL_NAME = re.compile("[A-Za-z0-9_-]{1,64}")

SINGULAR = "trigger"
"""Refused by its own words, so that the missing ``triggers`` need not be told beside it."""

_WEBHOOK = frozenset(
    {"type", "source", "events", "signature", "credential_name", "tolerance_seconds", "payload"}
)
_CRON = frozenset({"type", "schedule", "timezone", "message"})
_SIGNATURE = frozenset({"secret_ref", "header", "prefix", "ts_header"})
_SOURCE = re.compile("[A-Za-z0-9][A-Za-z0-9._-]*")
_HEADER = re.compile("[A-Za-z0-9][A-Za-z0-9_-]*")
_PREFIX = re.compile("[ -~]*")
_ZONE = re.compile("[A-Z][A-Za-z0-9_+-]*(?:/[A-Za-z0-9_+-]+){0,2}")
_CRON_FIELDS = 5
_ANY_DAY = datetime(2024, 1, 1, tzinfo=UTC)
"""From where a schedule is tried: that it fires at all does not depend on the day."""


def read_triggers(fields: Fields) -> tuple[WebhookTrigger | CronTrigger, ...]:
    found: list[WebhookTrigger | CronTrigger] = []
    taken: dict[str, str] = {}
    for entry in fields.tables("triggers", least=1, most=MAX_TRIGGERS, required=SINGULAR not in fields):
        trigger = _trigger(entry)
        if trigger is None:
            continue
        _refuse_second(entry, trigger, taken)
        found.append(trigger)
    return tuple(found)


def _trigger(fields: Fields) -> WebhookTrigger | CronTrigger | None:
    kind = fields.text("type", most=16)
    match kind:
        case "webhook":
            return _webhook(fields)
        case "cron":
            return _cron(fields)
        case "":
            return None
        case _:
            fields.wrong("type", f"`{kind}` is no trigger; use `webhook` or `cron`")
            return None


def _refuse_second(fields: Fields, trigger: WebhookTrigger | CronTrigger, taken: dict[str, str]) -> None:
    """Each address, and each schedule in a time zone, belongs to one trigger."""
    if isinstance(trigger, CronTrigger):
        owner, key, told = f"cron {trigger.schedule} {trigger.timezone}", "schedule", "schedule"
    else:
        owner, key, told = f"webhook {trigger.source}", "source", "webhook trigger of this source"
    if owner in taken:
        fields.wrong(key, f"a second {told} (the first: {taken[owner]}); keep one")
    else:
        taken[owner] = fields.path.rstrip(".")


def _webhook(fields: Fields) -> WebhookTrigger:
    fields.only(_WEBHOOK)
    source = fields.text("source", most=64, pattern=_SOURCE)
    if source in RESERVED_SOURCES:
        fields.wrong("source", f"`{source}` is an address of the service; choose another label")
    return WebhookTrigger(
        source=source,
        events=_events(fields),
        signature=_signature(fields, source),
        tolerance_seconds=fields.integer(
            "tolerance_seconds", least=MIN_TOLERANCE_S, most=MAX_TOLERANCE_S, default=DEFAULT_TOLERANCE_S
        ),
        payload=_payload(fields, source),
    )


def _payload(fields: Fields, source: str) -> Payload | None:
    kind = fields.optional_text("payload", most=16)
    if kind is None:
        return None
    if source in NATIVE_SOURCES:
        fields.wrong("payload", f"`{source}` is known by its own form; leave the key out")
    elif kind not in {one.value for one in Payload}:
        fields.wrong("payload", f"`{kind}` is no payload; use `raw` or `envelope`")
    else:
        return Payload(kind)
    return None


def _events(fields: Fields) -> tuple[str, ...] | None:
    if "events" not in fields:
        return None
    return fields.texts("events", least=1, most=MAX_EVENTS, chars=MAX_EVENT_CHARS)


def _signature(fields: Fields, source: str) -> Signature | None:
    """From the signature block; for a native source ``credential_name`` alone says as much."""
    credential = fields.optional_text("credential_name", most=64, pattern=CREDENTIAL_NAME)
    block = fields.table("signature")
    if block is not None:
        return _signature_block(block, source, credential)
    if credential is not None and source in NATIVE_SOURCES:
        return Signature(credential)
    if credential is not None and source:
        fields.wrong(
            "credential_name", f"`{source}` is no native source; add a signature with secret_ref and header"
        )
    elif source in MULTISIG_SOURCES and "signature" not in fields:
        fields.wrong("signature", f"`{source}` always signs; add signature: {{secret_ref: <credential>}}")
    return None


def _signature_block(fields: Fields, source: str, credential: str | None) -> Signature:
    fields.only(_SIGNATURE)
    secret_ref = fields.text("secret_ref", most=64, required=credential is None, pattern=CREDENTIAL_NAME)
    if credential is not None:
        stands = "stands beside" if "secret_ref" in fields else "is missing beside"
        fields.wrong(
            "secret_ref",
            f"{stands} credential_name `{credential}`; name it here, and leave credential_name out",
        )
    if source in MULTISIG_SOURCES:
        for key in ("header", "prefix", "ts_header"):
            if key in fields:
                fields.wrong(key, f"`{source}` has headers of its own; leave the key out")
    if source in TIMELESS_SOURCES and "ts_header" in fields:
        fields.wrong("ts_header", f"`{source}` signs no time; leave the key out")
    header = _header(fields, "header")
    if source and source not in NATIVE_SOURCES and "header" not in fields:
        fields.wrong(
            "header", f"is missing: `{source}` is no native source; name the header with the signature"
        )
    return Signature(
        secret_ref=secret_ref,
        header=header,
        prefix=_prefix(fields),
        ts_header=_header(fields, "ts_header"),
    )


def _header(fields: Fields, key: str) -> str | None:
    name = fields.optional_text(key, most=MAX_HEADER_CHARS, pattern=_HEADER)
    return name.lower() if name else None


def _prefix(fields: Fields) -> str | None:
    """``prefix: ""`` is what the author writes for none, so here nothing is a value."""
    node = fields.node("prefix")
    if node is None or getattr(node, "text", None) == "":
        return None if node is None else ""
    return fields.text("prefix", most=64, pattern=_PREFIX)


def _cron(fields: Fields) -> CronTrigger:
    fields.only(_CRON)
    return CronTrigger(
        schedule=_schedule(fields),
        timezone=_timezone(fields),
        message=fields.text("message", most=MAX_CRON_MESSAGE_CHARS, required=False),
    )


def _schedule(fields: Fields) -> str:
    words = fields.text("schedule", most=256).split()
    if not words:
        return ""
    schedule = " ".join(words)
    if len(words) != _CRON_FIELDS:
        fields.wrong("schedule", f"must have five fields (minute hour day month weekday), has {len(words)}")
        return schedule
    try:
        next(CronSim(schedule, _ANY_DAY))
    except CronSimError as error:
        fields.wrong("schedule", f"`{schedule}` is no cron schedule: {error}")
    except StopIteration:
        fields.wrong("schedule", f"`{schedule}` never fires")
    return schedule


def _timezone(fields: Fields) -> str:
    name = fields.text("timezone", most=64, required=False)
    if name and not _is_zone(name):
        fields.wrong("timezone", f"`{name}` is no IANA time zone; write one such as Europe/Berlin, or UTC")
    return name or "UTC"


def _is_zone(name: str) -> bool:
    if not _ZONE.fullmatch(name):
        return False
    try:
        ZoneInfo(name)
    except (
        OSError,
        ValueError,
        KeyError,
    ):  # a folder of zones; no zone file; unknown (ZoneInfoNotFoundError)
        return False
    return True
