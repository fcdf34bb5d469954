"""The errors between a run and its model."""

from sexton_runner.errors import RunnerError


class ModelFault(RunnerError):
    """Root of what a question to a model can end in."""


class ProviderMissing(ModelFault):
    """There is no such provider here, or its package is not installed."""


class ModelAway(ModelFault):
    """No whole answer: connection fault, silence, 429, 5xx, a broken stream. It may be asked again."""

    def __init__(self, why: str, retry_after_s: float | None = None, *, busy: bool = False) -> None:
        super().__init__(why)
        self.retry_after_s = retry_after_s
        self.busy = busy
        """The provider itself said that it cannot answer now; it was not merely out of reach."""


class ModelsBusy(ModelFault):
    """No model of the run will answer for a while: the event may wait elsewhere."""

    def __init__(self, why: str, retry_after_s: float) -> None:
        super().__init__(why)
        self.retry_after_s = retry_after_s


class ModelRefused(ModelFault):
    """The provider turned the question down, and would again: an unknown model, a bad request."""


class KeyRefused(ModelRefused):
    """The provider does not accept the key, or the account has no credit left there."""


class QuotaUsed(KeyRefused):
    """The account has used up its credit or its quota: another provider may still answer."""


class WindowFull(ModelRefused):
    """The conversation is longer than the model can read."""
