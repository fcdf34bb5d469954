"""The records that have a table of their own, as rows."""

from sexton_storage.postgres.sql.rows import Rows
from sexton_storage.records.api_keys import ApiKey
from sexton_storage.records.configs import ConfigVersion
from sexton_storage.records.credentials import Credential
from sexton_storage.records.events import Event, ListedEvent
from sexton_storage.records.frames import Frame
from sexton_storage.records.gates import Gate
from sexton_storage.records.improvement import Proposal, Score
from sexton_storage.records.leases import Lease
from sexton_storage.records.metering import MeteringPeriod
from sexton_storage.records.runners import EnrolmentToken, Runner
from sexton_storage.records.tenants import Tenant
from sexton_storage.records.users import User
from sexton_storage.records.workspaces import Workspace
from sexton_storage.records.zombies import Zombie

TENANTS = Rows(Tenant)
WORKSPACES = Rows(Workspace)
USERS = Rows(User)
API_KEYS = Rows(ApiKey)
CREDENTIALS = Rows(Credential)
CONFIGS = Rows(ConfigVersion)
ZOMBIES = Rows(Zombie, without=("compiled", "last_event_at"))
"""Read through a join: ``compiled`` is its configuration's, ``last_event_at`` its head's."""
EVENTS = Rows(Event)
LISTED_EVENTS = Rows(ListedEvent)
LEASES = Rows(Lease)
GATES = Rows(Gate)
FRAMES = Rows(Frame)
METERING = Rows(MeteringPeriod)
PROPOSALS = Rows(Proposal)
SCORES = Rows(Score)
RUNNERS = Rows(Runner)
ENROLMENTS = Rows(EnrolmentToken)

# What waits and what runs stands in two narrow tables, ``waiting_events`` and ``live_leases``, which follow
# the statuses by triggers (the migration ``narrow_rows``). No index of the wide tables holds a status, except
# for those that few events come to.
BLOCKED = "unusual_status = 'gate_blocked' AND failure_label = 'balance_exhausted'"
"""Events that wait for credit."""
