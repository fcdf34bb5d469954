"""Who is signed in with a browser: cookies, and the sessions behind them."""

import re
from collections.abc import Callable
from typing import Final
from uuid import UUID

from sexton_http.answers import Problem, RequestHead
from sexton_http.identity.access import AccessChanges
from sexton_http.identity.context import HttpContext
from sexton_http.identity.principals import SignedIn
from sexton_http.identity.recent_sign_ins import RecentSignIns
from sexton_http.identity.same_origin import check_same_origin
from sexton_http.identity.sign_in_terms import HOUR_MS
from sexton_http.identity.tokens import TOKEN_BYTES, digest, same
from sexton_storage.records.sign_ins import BrowserSession, SignInKind, SignInLink
from sexton_storage.records.users import User
from sexton_storage.stores import Storage

LINK_MS: Final = HOUR_MS
TOUCH_MS: Final = 60_000
"""How often use is written at most."""
_TOKEN: Final = re.compile(rf"[0-9a-f]{{{2 * TOKEN_BYTES}}}")

Header = tuple[bytes, bytes]


class Browsers:
    """Looks go to the store, so who signs out is out at once, on every node.

    But for those of open pages, which are told of a change: see ``find_again``.
    """

    def __init__(self, ctx: HttpContext, access: AccessChanges | None = None) -> None:
        self._access = AccessChanges(ctx.world.storage.signals) if access is None else access
        self._recent = RecentSignIns(ctx.monotonic)
        self._access.on_change(self._recent.forget)
        self._storage = ctx.world.storage
        self._now: Callable[[], int] = ctx.world.now_ms
        self._new_id = ctx.world.new_id
        self._new_token = ctx.world.new_token
        self.terms = ctx.settings.sign_ins
        self._base_url = ctx.settings.base_url
        self._secure = ctx.settings.base_url.startswith("https:")
        # With this prefix a browser takes the cookie from this host alone, and only over TLS.
        self.cookie_name = "__Host-sexton" if self._secure else "sexton"

    def __repr__(self) -> str:
        return f"<Browsers, cookie {self.cookie_name}>"

    # --- coming and going -----------------------------------------------------------------------------------

    async def offer(self, user_id: UUID) -> str:
        """The address of a page that signs this user in, once, within an hour."""
        return await offer_link(self._storage, self._base_url, user_id, self._new_token)

    async def find_link(self, token: str) -> SignInLink | None:
        """None for one that signs nobody in."""
        hashed = digest(token)
        link = await self._storage.sign_ins.find_link(hashed)
        if (
            link is None
            or not same(link.token_hash, hashed)
            or link.used_at is not None
            or link.expires_at <= self._now()
        ):
            return None
        user = await self._storage.users.load(link.user_id)
        return link if user is not None and user.is_admitted else None

    async def sign_in(
        self, head: RequestHead, user_id: UUID, link: SignInLink | None = None
    ) -> Header | None:
        """The cookie of a new session, in place of the one that the browser has; None for a used link."""
        token, now = self._new_token(TOKEN_BYTES), self._now()
        life_ms = self.terms.life_of(SignInKind.BROWSER)
        session = BrowserSession(
            id=self._new_id(),
            token_hash=digest(token),
            user_id=user_id,
            created_at=now,
            seen_at=now,
            idle_ends_at=now + self.terms.idle_of(SignInKind.BROWSER),
            ends_at=now + life_ms,
        )
        link_hash = None if link is None else link.token_hash
        if not await self._storage.sign_ins.sign_in(session, link_hash=link_hash):
            return None
        old = await self._session(head)
        if old is not None:
            await self.sign_out(old.id)
        return self._cookie(token, life_ms // 1000)

    async def sign_out(self, session_id: UUID) -> Header:
        """End the session and all that belongs to it; gives the header that takes the cookie away."""
        await self._storage.sign_ins.sign_out(session_id)
        self._access.tell(session_id)
        return self._cookie("", 0)

    def _cookie(self, value: str, age_s: int) -> Header:
        secure = "; Secure" if self._secure else ""
        text = f"{self.cookie_name}={value}; Path=/; Max-Age={age_s}; HttpOnly; SameSite=Strict{secure}"
        return b"set-cookie", text.encode()

    # --- who it is ------------------------------------------------------------------------------------------

    async def find(self, head: RequestHead, *, is_use: bool = True) -> SignedIn | None:
        """Say whose browser it is. ``is_use``: whether a person asks, and not an open page by itself."""
        session = await self._session(head)
        if session is None:
            return None
        user = await self._storage.users.load(session.user_id)
        tenant = None if user is None else await self._storage.tenants.load(user.tenant_id)
        if user is None or tenant is None or not user.is_admitted:
            return None
        if is_use:
            await self._touch(session)
        return SignedIn(session, user, tenant)

    async def find_again(self, head: RequestHead) -> SignedIn | None:
        """As ``find``, for a page that is open: asks the store once in some seconds, and after a change.

        It is no use: a browser that is left open is signed out like one that is closed.
        """
        token = read_cookie(head, self.cookie_name)
        if token is None:
            return None
        hashed = digest(token)
        known = self._recent.get(hashed)
        if known is not None and self._now() < self.terms.ends_at(known.session):
            return known
        changes, who = self._recent.changes, await self.find(head, is_use=False)
        if who is not None:
            self._recent.keep(hashed, who, changes)
        return who

    async def require(self, head: RequestHead) -> SignedIn:
        """As ``find``, for a request of our own pages. Raises Problem UZ-AUTH-001 or UZ-AUTH-002."""
        check_same_origin(head, self._base_url)
        who = await self.find(head)
        if who is None:
            raise Problem("UZ-AUTH-002", "this browser is not signed in")
        return who

    async def find_terminal(self, refresh_token: str) -> tuple[BrowserSession, User] | None:
        """Who is signed in at the terminal that has this refresh token; looking counts as use."""
        hashed = digest(refresh_token)
        session = await self._storage.sign_ins.find_session(hashed)
        if (
            session is None
            or session.kind is not SignInKind.TERMINAL
            or not same(session.token_hash, hashed)
            or self._now() >= self.terms.ends_at(session)
        ):
            return None
        user = await self._storage.users.load(session.user_id)
        if user is None or not user.is_admitted:
            return None
        await self._touch(session)
        return session, user

    async def left_ms(self, session_id: UUID) -> int:
        """How long it stays signed in if nobody uses it any more; 0 when it is over. Asking is no use."""
        session = await self._storage.sign_ins.load_session(session_id)
        return 0 if session is None else max(0, self.terms.ends_at(session) - self._now())

    async def note_token(self, session_id: UUID) -> bool:
        """A user token of this sign-in is used; whether the sign-in still stands.

        A terminal shows its refresh token only when a user token has run out: what it asks in between is use
        as well. A browser's use is what its pages are asked for.
        """
        session = await self._storage.sign_ins.load_session(session_id)
        if session is None or self._now() >= self.terms.ends_at(session):
            return False
        if session.kind is SignInKind.TERMINAL:
            await self._touch(session)
        return True

    async def _session(self, head: RequestHead) -> BrowserSession | None:
        token = read_cookie(head, self.cookie_name)
        if token is None or _TOKEN.fullmatch(token) is None:
            return None
        hashed = digest(token)
        session = await self._storage.sign_ins.find_session(hashed)
        if (
            session is None
            or not same(session.token_hash, hashed)
            or self._now() >= self.terms.ends_at(session)
        ):
            return None
        return session if session.kind is SignInKind.BROWSER else None

    async def _touch(self, session: BrowserSession) -> None:
        now = self._now()
        if now - session.seen_at >= TOUCH_MS:
            idle_ends_at = now + self.terms.idle_of(session.kind)
            await self._storage.sign_ins.touch(session.id, seen_at=now, idle_ends_at=idle_ends_at)


async def offer_link(storage: Storage, base_url: str, user_id: UUID, new_token: Callable[[int], str]) -> str:
    """The address of a page that signs this user in, once, within an hour."""
    token, now = new_token(TOKEN_BYTES), storage.clock.now_ms()
    await storage.sign_ins.offer(SignInLink(digest(token), user_id, now, now + LINK_MS))
    return f"{base_url}/auth/sign-in/{token}"


def read_cookie(head: RequestHead, name: str) -> str | None:
    """The value of one cookie.

    >>> read_cookie(RequestHead("GET", "/", b"", {b"cookie": b"a=1; b=2"}, ""), "b")
    '2'
    """
    text = head.header(b"cookie")
    if text is None:
        return None
    for part in text.split(";"):
        key, _, value = part.strip().partition("=")
        if key == name:
            return value
    return None
