"""Applies one folder to one workspace: looks, plans, says what it means to do, does it, and looks again."""

import time
import uuid
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Final

import msgspec

from sexton_cli.client import Client, field
from sexton_cli.declared.declaration_file import SECRET_SHAPE
from sexton_cli.declared.folder import Folder
from sexton_cli.declared.live import Applied, Live, LiveReader, read_applied, wanted_agents
from sexton_cli.declared.steps import Made, Steps
from sexton_cli.declared.things import TEXTS, Fields, Kind, Things, key_of, name_of
from sexton_cli.declared.three_way import Change, Note, Plan, Verb, intended, plan
from sexton_cli.exits import FAILED, Fault
from sexton_cli.problems import Refused

CHANGED: Final = "UZ-APPLY-001"
HELD: Final = "UZ-APPLY-002"
RENEW_S: Final = 5.0
"""A quarter of the time after which another may take over."""
LOOK_AGAIN_S: Final = 1.0
TRIES: Final = 3
TRIES_OF_STEP: Final = 5
"""How often a step is tried that the server has no time for."""
STANDING: Final = key_of(Kind.WORKSPACE, "")
NOWHERE: Final = Applied(0, applying=False, age_ms=0, updated_by="", items={})


class Rules(msgspec.Struct, frozen=True):
    """What the person has asked for."""

    prune: bool = False
    take_over: bool = False
    wait_s: float = 60.0
    """How long to wait while somebody else is applying to the workspace."""


class Left(msgspec.Struct, frozen=True):
    """An agent of which a version is on trial: other files would end that."""

    agent: str
    version: int
    share: int


class Seen(msgspec.Struct, frozen=True):
    """What one look at the server has found."""

    applied: Applied
    live: Live
    plan: Plan
    left: tuple[Left, ...] = ()
    """Agents whose files stay as they are for now."""


class Session:
    """One folder and one workspace; ``workspace`` is its path, None while it is not there."""

    def __init__(
        self,
        client: Client,
        folder: Folder,
        workspace: str | None,
        rules: Rules,
        *,
        sleep: Callable[[float], None] = time.sleep,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._folder = folder
        self._rules = rules
        self._sleep = sleep
        self._now = now
        self._seed = uuid.uuid4()
        self.workspace = workspace
        self.made: list[Made] = []
        self._agreed: frozenset[str] | None = None

    @property
    def key_of_workspace(self) -> str:
        """Under which the workspace is made, once."""
        return str(uuid.uuid5(self._seed, "workspace"))

    def look(self) -> Seen:
        """Plan, and change nothing. Raises Fault where it could not be done."""
        applied, live = NOWHERE, Live({})
        if self.workspace is not None:
            applied = read_applied(self._client, self.workspace)
            agents = wanted_agents(self._folder.things, applied.items)
            live = LiveReader(self._client, self.workspace).read(agents, self._folder.secrets)
        left, there = _on_trial(live, self._folder)
        planned = plan(
            applied.items,
            there,
            self._folder.things,
            folder=self._folder.name,
            prune=self._rules.prune,
            # Whoever was broken off left notes of what they meant to do, not of what is there.
            sure=not applied.applying,
        )
        removed = frozenset(change.key for change in planned.steps if change.verb is Verb.REMOVE)
        if self._agreed is None:
            self._agreed = removed
        elif not removed <= self._agreed:
            # What somebody has agreed to is what they were shown.
            what = f"there is more to remove than was shown: {', '.join(sorted(removed - self._agreed))}"
            raise Fault(what, "Another has applied meanwhile. Look again.", status=FAILED)
        self._check(planned, is_paused=bool(live.things.get(STANDING, {}).get("paused")))
        return Seen(applied, live, planned, left)

    def do(self, seen: Seen) -> Seen:
        """Do what was planned, or what is planned now if another was quicker; gives what was done."""
        seen, revision = self._begin(seen)
        if self.workspace is None:
            raise Fault("the workspace is not there", status=FAILED)
        steps = Steps(self._client, self.workspace, self._folder, seen.live, seed=self._seed)
        done: list[Change] = []
        told_at = self._now()
        try:
            for change in seen.plan.steps:
                if self._now() - told_at > RENEW_S:
                    revision, told_at = self._write("renew", revision, None), self._now()
                self._take(steps, change)
                done.append(change)
        except BaseException:
            # Ctrl-C too: nobody is to wait for one who has given up.
            self.made = steps.made
            self._end_early(revision, seen, done)
            raise
        self.made = steps.made
        self._write("end", revision, dict(seen.plan.notes))
        self._look_again()
        return seen

    def _take(self, steps: Steps, change: Change) -> None:
        for _ in range(TRIES_OF_STEP - 1):
            try:
                steps.take(change)
            except Refused as refusal:
                if refusal.http_status not in {HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE}:
                    raise
                self._sleep(LOOK_AGAIN_S)
            else:
                return
        steps.take(change)

    def _begin(self, seen: Seen) -> tuple[Seen, int]:
        until, tries = self._now() + self._rules.wait_s, TRIES
        while True:
            try:
                notes = intended(seen.applied.items, seen.plan)
                return seen, self._write("begin", seen.applied.revision, notes)
            except Refused as refusal:
                waits = refusal.code == HELD and self._now() < until
                tries -= refusal.code == CHANGED
                if not waits and (refusal.code != CHANGED or tries == 0):
                    raise
            if waits:
                self._sleep(LOOK_AGAIN_S)
            seen = self.look()

    def _end_early(self, revision: int, seen: Seen, done: list[Change]) -> None:
        """Remember what was done before it went wrong; where that fails too, the intention stays."""
        try:
            self._write("end", revision, intended(seen.applied.items, seen.plan, done=done))
        except Fault:
            return

    def _look_again(self) -> None:
        if steps := self.look().plan.steps:
            keys = ", ".join(change.key for change in steps)
            way_out = "Look with --diff, and apply again."
            raise Fault(f"somebody else has changed this meanwhile: {keys}", way_out, status=FAILED)

    def _write(self, phase: str, revision: int, notes: Mapping[str, Note] | None) -> int:
        body: dict[str, object] = {"phase": phase, "revision": revision, "holder": str(self._seed)}
        if notes is not None:
            body["items"] = msgspec.to_builtins(notes)
        written = self._client.put(f"{self.workspace}/applied", body)
        found: int = field(written, "revision", int)
        return found

    def _check(self, planned: Plan, *, is_paused: bool) -> None:
        """What a server would refuse half-way is refused before the first change. Raises Fault."""
        if planned.foreign and not self._rules.take_over:
            key, other = planned.foreign[0]
            way_out = "Take it out of one of both folders, or give --take-over."
            raise Fault(f"{key} was applied by the folder {other!r}", way_out, status=FAILED)
        goes_on = any(one.field == "paused" for change in planned.steps for one in change.fields)
        for change in planned.steps:
            if change.verb is Verb.REMOVE:
                continue
            if change.verb is Verb.MAKE and change.kind is Kind.AGENT and is_paused and not goes_on:
                way_out = "Let it go on, or say `paused: false` in sexton.yaml."
                raise Fault("the workspace is paused, and takes no new agents", way_out, status=FAILED)
            key_less = change.key not in self._folder.secrets
            if change.kind in {Kind.CREDENTIAL, Kind.MODEL_KEY} and key_less:
                self._lacks_secret(change)
            for one in change.fields:
                leak = SECRET_SHAPE.search(one.after) if one.field in TEXTS else None
                if leak is not None:
                    line = str(one.after).count("\n", 0, leak.start()) + 1
                    place = f"{TEXTS[one.field]} of {name_of(change.key)}, line {line}"
                    what = f"{place}: a secret stands there as it is"
                    raise Fault(what, "Keep it in the vault, and name the credential.", status=FAILED)

    def _lacks_secret(self, change: Change) -> None:
        what = f"credential {name_of(change.key)}" if change.kind is Kind.CREDENTIAL else "model key"
        said = "data or object" if change.kind is Kind.CREDENTIAL else "api_key"
        way_out = f"Name the source of its secret in sexton.yaml, under {said}."
        if change.verb is Verb.MAKE:
            raise Fault(f"the vault has no {what}", way_out, status=FAILED)
        fields = ", ".join(one.field for one in change.fields)
        raise Fault(
            f"{fields} of the {what} can only be changed together with its secret", way_out, status=FAILED
        )


def _on_trial(live: Live, folder: Folder) -> tuple[tuple[Left, ...], Things]:
    """Agents whose files are left alone while a version is on trial, and what is there but for these files.

    Where the folder has the very files that are on trial, there is nothing to say.
    """
    left, there = list[Left](), dict(live.things)
    for name, trial in live.trials.items():
        key = key_of(Kind.AGENT, name)
        if (want := folder.things.get(key)) is None:
            continue
        texts = {text: want[text] for text in TEXTS}
        if texts not in ({"skill": trial.skill, "trigger": trial.trigger}, _texts(there[key])):
            left.append(Left(name, trial.version, trial.share))
        there[key] = {**there[key], **texts}
    return tuple(left), there


def _texts(fields: Fields) -> dict[str, str]:
    return {text: fields[text] for text in TEXTS}


def adopts(seen: Seen) -> bool:
    """Whether there is something to remember, although nothing has to change."""
    return dict(seen.plan.notes) != seen.applied.items or seen.applied.applying
