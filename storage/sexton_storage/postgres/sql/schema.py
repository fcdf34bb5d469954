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

# Each index of what waits or runs has a condition of its own, which always holds (migration 0012): a
# statement that repeats it is served by that index, and one that does not is never tempted to read all of it.
RECEIVED = "status = 'received' AND created_at >= 0"
"""Events that wait, by age."""
LIVE = "status IN ('active', 'cancelling') AND granted_at >= 0"
"""Live leases, by runner or all of them."""
LIVE_OF_AGENT = "status IN ('active', 'cancelling') AND fencing_token >= 0"
"""The live lease of an agent."""
BLOCKED = "status = 'gate_blocked' AND failure_label = 'balance_exhausted'"
"""Events that wait for credit."""
