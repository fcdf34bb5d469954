"""The words with which a chat is told that a guard has ended the trial of a version."""

from sexton_actors.canaries.record import CanaryStatus, canary_of
from sexton_actors.chat.texts import bounded, code, message_of, plain
from sexton_actors.ports.chat import Notice
from sexton_storage.documents import Json

MAX_DETAIL_CHARS = 500


def trial_notice_of(agent: str, facts: Json) -> Notice:
    """What happened, why, what follows from it, and what to do next.

    >>> from uuid import UUID
    >>> from sexton_actors.canaries.record import Canary, Guard, kept_as
    >>> over = Canary(UUID(int=1), UUID(int=2), 4, 3, 10, Guard(), None, CanaryStatus.WITHDRAWN, 1, "user:1",
    ...     ended_at=2, ended_by="system:guard", why="failures", detail="6 of 10 runs failed.")
    >>> print(trial_notice_of("sorter", kept_as(over)).text)
    *sorter*: version 4 was on trial, and its guard has taken it back.
    >6 of 10 runs failed.
    Version 3 does all of the agent's work again. See how both did with `sexton agent canary status sorter`. \
Then mend the files, and start a trial of the new version.
    """
    trial = canary_of(facts)
    if trial is None:
        return message_of(f"*{plain(agent)}*: the trial of a version is over.")
    why = f">{plain(bounded(trial.detail, MAX_DETAIL_CHARS))}"
    look = f"See how both did with `sexton agent canary status {code(agent)}`."
    if trial.status is CanaryStatus.PROMOTED:
        happened = f"version {trial.version} was on trial, and its guard has made it the active one."
        back = f"`sexton agent roll-back {code(agent)} {trial.base_version}`"
        follows = f"It does all of the agent's work now. {look} To go back: {back}."
    else:
        happened = f"version {trial.version} was on trial, and its guard has taken it back."
        follows = (
            f"Version {trial.base_version} does all of the agent's work again. {look}"
            " Then mend the files, and start a trial of the new version."
        )
    return message_of(f"*{plain(agent)}*: {happened}\n{why}\n{follows}")
