"""What an open loop of load found, as lines of the table."""

from bench import harness
from bench.load import Loaded


def open_figures(loaded: Loaded, unit: str) -> list[harness.Figure]:
    """The rate that was answered, and latencies from when each request was due."""
    latencies = (("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999), ("slowest", 1.0))
    return [
        harness.Figure("open loop: answered", harness.once(loaded.per_second), unit),
        *(
            harness.Figure(f"open loop: latency {label}", harness.once(loaded.latency_ms(share)), "ms")
            for label, share in latencies
        ),
    ]
