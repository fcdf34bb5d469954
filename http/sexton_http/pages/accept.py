"""Whether a client would rather have a page or a document."""

from typing import Final

from sexton_http.answers import RequestHead

PAGES: Final = frozenset({"text/html", "application/xhtml+xml"})
DOCUMENTS: Final = frozenset({"application/problem+json", "application/json"})


def prefers_pages(head: RequestHead) -> bool:
    """Only who names pages in Accept, and documents no better: so browsers do, and programs do not."""
    wishes: dict[str, float] = {}
    for part in (head.header(b"accept") or "").split(","):
        media, *rest = (piece.strip().lower() for piece in part.split(";"))
        weight = next((piece[2:] for piece in rest if piece.startswith("q=")), "1")
        try:
            wishes[media] = float(weight)
        except ValueError:
            continue
    pages = max((wishes.get(media, 0.0) for media in PAGES), default=0.0)
    return pages > 0 and pages >= max(wishes.get(media, 0.0) for media in DOCUMENTS)
