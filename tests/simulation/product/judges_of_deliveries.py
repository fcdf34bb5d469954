"""What must hold of deliveries of webhooks: however often one comes, it is one event."""

from collections.abc import Iterator
from itertools import islice

from tests.simulation.product.record import Record


def delivered_once(record: Record) -> Iterator[str]:
    """A delivery that comes again, with its id or without, is the event that it was before."""
    if record.times is not None:
        return  # Rows are deleted there, and events are not counted by their places.
    seen = record.deliveries
    events = record.tables.events
    requests = record.read_requests()
    for event in islice(events.values(), seen.read, None):
        seen.read += 1
        delivery = requests[event.id].delivery
        if delivery is None or event.resumes_event_id is not None:
            continue
        first = seen.events.setdefault((event.zombie_id, delivery), event.id)
        if first != event.id:
            yield f"{delivery} is event {first} of agent {event.zombie_id}, and event {event.id} too"
