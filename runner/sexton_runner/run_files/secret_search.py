"""Looks for a run's secrets in bytes that come in pieces."""

from sexton_runner.redact import Redactor


class SecretSearch:
    r"""Finds a secret wherever it stands, over the borders of pieces too.

    >>> search = SecretSearch(Redactor({"github": "hunter22"}))
    >>> [search.finds(piece) for piece in (b"\xff hunt", b"er2", b"2 ")]
    [False, False, True]
    """

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._tail = b""

    def finds(self, piece: bytes) -> bool:
        """Tell whether a secret ends in this piece."""
        text = self._tail + piece
        keep = self._redactor.longest - 1
        self._tail = text[-keep:] if keep > 0 else b""
        return self._redactor.is_in(text)
