"""Every sender that is known by its label."""

from sexton_actors.manifest.model import Payload, WebhookTrigger
from sexton_actors.webhooks.source import Reader, Source
from sexton_actors.webhooks.sources import generic, github, linear, sentry, slack, standard_webhooks, stripe

NATIVE = {
    "github": github.SOURCE,
    "slack": slack.SOURCE,
    "linear": linear.SOURCE,
    "stripe": stripe.SOURCE,
    "sentry": sentry.SOURCE,
    "svix": standard_webhooks.SVIX,
    "standard-webhooks": standard_webhooks.STANDARD,
}


def source_of(label: str) -> Source:
    return NATIVE.get(label, generic.SOURCE)


def reader_of(trigger: WebhookTrigger) -> Reader:
    """How its bodies are read: as the trigger says, else as its source is known to send them."""
    match trigger.payload:
        case Payload.RAW:
            return generic.read_raw
        case Payload.ENVELOPE:
            return generic.read_envelope
        case None:
            return source_of(trigger.source).read
