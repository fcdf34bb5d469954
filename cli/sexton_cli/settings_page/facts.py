"""What the settings page says of an option beyond what its command knows: unit, bounds, metrics."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from sexton_runner.settings import MAX_HOST_ID_CHARS, MAX_LABEL_CHARS, MAX_LABELS, MAX_SLOTS


class Fact(NamedTuple):
    """``seen`` are names of metrics. ``bounds`` and ``default`` stand where the command declares none."""

    unit: str = ""
    seen: tuple[str, ...] = ()
    bounds: str = ""
    default: str = ""


_SHARE: Final = Fact("percent", ("sexton_http_full",))
_TRANSCRIPT: Final = Fact("MiB", ("sexton_transcripts",))
_S3: Final = Fact(seen=("sexton_file_moves",))

SERVER: Final[Mapping[str, Fact]] = {
    "data": Fact(
        seen=("sexton_disk_free_bytes", "sexton_disk_size_bytes"), default="`~/.local/share/sexton`"
    ),
    "port": Fact(bounds="0 to 65535", default="8300"),
    "database_url": Fact(seen=("sexton_journal_outages",)),
    "database_wait_s": Fact("s"),
    "look_every_s": Fact("s", ("sexton_node_signals",)),
    "trusted_proxies": Fact(seen=("sexton_http_full",)),
    "max_in_flight": Fact("requests", ("sexton_http_in_flight", "sexton_http_full")),
    "max_long_polls": Fact("requests", ("sexton_http_in_flight", "sexton_http_full")),
    "max_streams": Fact("streams", ("sexton_http_in_flight", "sexton_http_full")),
    "max_connections": Fact("connections", ("sexton_http_connections",)),
    "max_connections_per_address": Fact("connections", ("sexton_http_connections",)),
    "caller_share": _SHARE,
    "tenant_share": _SHARE,
    "address_share": _SHARE,
    "operator_reserve": _SHARE,
    "max_device_logins": Fact("terminals", ("sexton_http_problems",)),
    "max_device_logins_per_address": Fact("terminals", ("sexton_http_problems",)),
    "sign_in_hours": Fact("hours"),
    "sign_in_idle_minutes": Fact("minutes"),
    "max_body_memory": Fact("MiB", ("sexton_http_body_bytes",)),
    "max_answer_mib": Fact("MiB", ("sexton_http_answer_bytes",)),
    "busy_at": Fact("ms", ("sexton_admission_lag_seconds", "sexton_admission_refused")),
    "max_waiting_agent": Fact("events", ("sexton_queue_full", "sexton_events_queued")),
    "max_waiting_workspace": Fact("events", ("sexton_queue_full", "sexton_events_queued")),
    "max_waiting_age": Fact("s", ("sexton_queue_full", "sexton_oldest_event_age_seconds")),
    "max_file": Fact("MiB", ("sexton_files",)),
    "files_quota": Fact("MiB", ("sexton_files", "sexton_file_bytes_kept")),
    "files_keep": Fact("days", ("sexton_file_bytes_kept",)),
    "webhook_bodies": Fact("MiB", ("sexton_webhook_records",)),
    "transcript_days": Fact("days", ("sexton_transcripts",)),
    "max_transcript_run": _TRANSCRIPT,
    "max_transcript_workspace": _TRANSCRIPT,
    "slice_days": Fact("days", ("sexton_metering_compacted",)),
    "files_store": Fact(seen=("sexton_file_moves", "sexton_files_to_move")),
    "archive": Fact(seen=("sexton_archived", "sexton_archive_waiting_seconds")),
    "s3_endpoint": _S3,
    "s3_region": _S3,
    "otlp_endpoint": Fact(seen=("sexton_spans", "sexton_trace_ends")),
    "workers": Fact("processes", ("sexton_worker_up", "sexton_worker_restarts")),
    "database_pool": Fact("connections", ("sexton_database_connections_max", "sexton_database_wait_seconds")),
    "runners": Fact("processes", ("sexton_runners",)),
    "slots": Fact("runs", ("sexton_runner_slots",)),
    "label": Fact(seen=("sexton_label_slots_wanted",)),
    "drain_s": Fact("s"),
    "wait_s": Fact("s"),
}
"""The options of commands that start or prepare a server, by the name of the parameter."""

RUNNER: Final[Mapping[str, Fact]] = {
    "host_id": Fact("characters", bounds=f"1 to {MAX_HOST_ID_CHARS}"),
    "label": Fact(
        "characters",
        ("sexton_label_slots_wanted",),
        f"at most {MAX_LABELS} labels of 1 to {MAX_LABEL_CHARS}",
    ),
    "slots": Fact("runs", ("sexton_runner_slots",), f"1 to {MAX_SLOTS}"),
    "drain_s": Fact("s", bounds="0 or more"),
    "run_wall_s": Fact("s", bounds="more than 0"),
    "images": Fact(default="`~/.local/share/sexton/images`"),
}
"""The options of a runner, whose program checks the bounds after it has read the words."""

VARIABLES: Final[Mapping[str, tuple[str, str]]] = {
    "SEXTON_MASTER_KEY": (
        "server",
        (
            "The keys that seal secrets, as VERSION:BASE64, with commas between, in place of `master.keys` "
            "in the data folder. [Rotate the master key](../how-to/rotate-the-master-key.md)"
        ),
    ),
    "SEXTON_MASTER_KEY_SEALS": ("server", "The version of these that seals from now on. Default: the newest"),
    "SEXTON_PG_BINDIR": (
        "server",
        "The folder of PostgreSQL's programs, where the embedded database's package is not installed.",
    ),
    "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_PROFILE": (
        "server",
        "Who signs in to the store of `--files-store` and of `--archive`.",
    ),
    "OTEL_EXPORTER_OTLP_HEADERS": (
        "server",
        "Headers for the collector of `--otlp-endpoint`, such as `authorization=Bearer%20…`.",
    ),
    "OTEL_SERVICE_NAME": ("server", "The name of the server in traces. Default: `sexton`"),
    "SSL_CERT_FILE, SSL_CERT_DIR": (
        "all",
        "Authorities that are trusted in place of the system's.",
    ),
    "HTTP_PROXY, HTTPS_PROXY, NO_PROXY": (
        "all",
        "The proxy on the way to the server, to providers of models and to issuers; none for loopback.",
    ),
    "SEXTON_<PROVIDER>_BASE_URL": (
        "runner, server",
        "Where a provider of models is reached; by a server, for previews. [Models](models.md)",
    ),
}
"""What no option says, with who reads it."""

FILES: Final = (
    (
        "`identity.toml`",
        "`--identity`",
        "at the start",
        "identity providers, issuers and Slack: [Sign in](../how-to/sign-in.md)",
    ),
    (
        "`billing.toml`",
        "`--billing`",
        "at the start",
        "plans with limits and rates, credit: [Set prices and plans](../how-to/set-prices-and-plans.md)",
    ),
    (
        "`catalogue.json`",
        "`--catalogue`",
        "at the start",
        "models and prices: [Set prices and plans](../how-to/set-prices-and-plans.md)",
    ),
    (
        "the pair of `--tls-cert` and `--tls-key`",
        "",
        "within 5 s of a change, or on SIGHUP",
        "the certificate: [Serve over TLS](../how-to/serve-over-tls.md)",
    ),
    (
        "`master.keys`",
        "",
        "at the start, and when keys are rotated",
        "the keys of the vault: [Rotate the master key](../how-to/rotate-the-master-key.md)",
    ),
    ("the file of `SEXTON_MCP_SERVERS`", "", "at a runner's start", "MCP servers: [Tools](tools.md)"),
)
"""Files with settings: name in the data folder, option for another place, when it is read, what is in it."""
