"""Turns the bearer of a token into a principal, and remembers it for a second."""

import base64
import binascii
from collections.abc import Awaitable, Callable, Sequence
from typing import Final
from uuid import UUID

import msgspec
import structlog

from sexton_http.answers import Problem, RequestHead
from sexton_http.bodies.ids import as_id
from sexton_http.bodies.shapes import EXPIRES_SOON_MS
from sexton_http.identity.access import AccessChanges
from sexton_http.identity.browsers import Browsers
from sexton_http.identity.context import Claims, HttpContext, Issuer
from sexton_http.identity.principals import Approver, Delegate, Enroller, Member, RunnerHost, check_unlimited
from sexton_http.identity.remembered_tokens import REMEMBER_COUNT, REMEMBER_S, RememberedTokens
from sexton_http.identity.sign_in_terms import DAY_MS
from sexton_http.identity.tokens import TokenKind, digest, same
from sexton_storage.errors import StorageUnavailable
from sexton_storage.records.api_keys import ApiKey
from sexton_storage.records.runners import AdminState
from sexton_storage.records.users import Rank, Role, User
from sexton_storage.stores import Storage

JWT_DOTS: Final = 2
KEY_USE_MS: Final = 60_000
"""How often a key's ``last_used_at`` is written at most."""

log = structlog.get_logger()
_ROLES: Final = frozenset(role.value for role in Role)


Touch = Callable[[Sequence[tuple[UUID, int]]], Awaitable[None]]
"""Writes down when keys were used last."""


def bearer(head: RequestHead) -> str | None:
    """The token of an Authorization header; None without one, or with another scheme."""
    value = head.headers.get(b"authorization")
    if value is None:
        return None
    scheme, _, token = value.partition(b" ")
    token = token.strip()
    if scheme.lower() != b"bearer" or not token or not token.isascii():
        return None
    return token.decode("ascii")


class Authenticator:
    """Asks the stores and the issuers; a token that was right a moment ago is not asked about again."""

    def __init__(self, ctx: HttpContext, browsers: Browsers, access: AccessChanges | None = None) -> None:
        self._browsers = browsers
        self._new_id = ctx.world.new_id
        self._warned: dict[UUID, int] = {}
        self._remembered = RememberedTokens(ctx.monotonic)
        if access is not None:
            access.on_change(self._remembered.forget_access)
        self._builtin = ctx.issuer.name
        self._storage: Storage = ctx.world.storage
        self._issuers: dict[str, Issuer] = {
            issuer.name: issuer for issuer in (ctx.issuer, *ctx.other_issuers)
        }
        self._used: dict[UUID, int] = {}

    async def member(self, head: RequestHead) -> Member:
        """An API key or a user token. Raises Problem with UZ-AUTH-002, -003, -004, -010 or UZ-APIKEY-004."""
        token = bearer(head)
        if token is None:
            raise Problem("UZ-AUTH-002", "this needs a bearer token")
        hashed = digest(token)
        known = self._remembered.recall(hashed)
        if isinstance(known, Member):
            return known
        if token.startswith(TokenKind.API_KEY):
            return await self._member_by_key(hashed)
        if token.startswith(TokenKind.AGENT):
            await self._delegate_by_key(hashed)
            raise Problem("UZ-AUTH-001", "an agent's key reaches its agent's events, memories and requests")
        if token.count(".") == JWT_DOTS:
            return await self._member_by_jwt(token, hashed)
        raise Problem("UZ-AUTH-002", "the token is neither an API key nor a user token")

    async def delegate(self, head: RequestHead) -> Delegate | None:
        """The bearer of an agent's key; None for any other token. Raises Problem with UZ-AUTH-002."""
        token = bearer(head)
        if token is None or not token.startswith(TokenKind.AGENT):
            return None
        hashed = digest(token)
        known = self._remembered.recall(hashed)
        return known if isinstance(known, Delegate) else await self._delegate_by_key(hashed)

    def recall_runner(self, head: RequestHead) -> RunnerHost | None:
        """The runner whose token was right a moment ago; None: ``runner`` asks."""
        token = bearer(head)
        known = None if token is None else self._remembered.recall(digest(token))
        return known if isinstance(known, RunnerHost) else None

    async def runner(self, head: RequestHead) -> RunnerHost:
        """A runner token. Raises Problem with UZ-RUN-001 or UZ-RUN-009."""
        token = bearer(head)
        if token is None or not token.startswith(TokenKind.RUNNER):
            raise Problem("UZ-RUN-001", "send a runner's bearer token")
        hashed = digest(token)
        known = self._remembered.recall(hashed)
        if isinstance(known, RunnerHost):
            return known
        runner = await self._storage.runners.find_by_hash(hashed)
        if runner is None or not same(runner.token_hash, hashed):
            raise Problem("UZ-RUN-001", "no runner has this token")
        if runner.admin_state is AdminState.REVOKED:
            raise Problem("UZ-RUN-009", "this runner was revoked")
        host = RunnerHost(runner)
        self._remembered.remember(hashed, host)
        return host

    async def enroller(self, head: RequestHead) -> Enroller:
        """An enrolment token (used up by the enrolment itself), or a platform admin."""
        token = bearer(head)
        if token is not None and token.startswith(TokenKind.ENROLMENT):
            hashed = digest(token)
            # A repetition under an Idempotency-Key has its answer, though the token is used up by then.
            again = b"idempotency-key" in head.headers
            if not again and await self._storage.runners.open_enrolment(hashed) is None:
                raise Problem("UZ-RUN-015", "the enrolment token is unknown, used or expired")
            return Enroller(hashed)
        member = await self.member(head)
        if not member.platform_admin:
            raise Problem(
                "UZ-AUTH-021", "a runner is enrolled with an enrolment token, or by a platform admin"
            )
        check_unlimited(member)
        return Enroller(None, member)

    async def approver(self, head: RequestHead, zombie_id: UUID) -> Approver:
        """The approval token of this agent. Raises Problem with UZ-WH-001 or UZ-AUTH-002."""
        token = bearer(head)
        if token is None or not token.startswith(TokenKind.APPROVAL):
            raise Problem("UZ-AUTH-002", "this needs the agent's approval token")
        zombie = await self._storage.zombies.load(zombie_id)
        if zombie is None:
            raise Problem("UZ-WH-001", f"no agent has the id {zombie_id}")
        if not same(zombie.approval_token_hash, digest(token)):
            raise Problem("UZ-AUTH-002", "this is not the agent's approval token")
        return Approver(zombie_id)

    def forget(self, token_hash: bytes) -> None:
        """The record behind a token has changed."""
        self._remembered.forget(token_hash)

    def forget_tenant(self, tenant_id: UUID) -> None:
        """Note that the tenant's plan was changed."""
        self._remembered.forget_tenant(tenant_id)

    async def _member_by_key(self, hashed: bytes) -> Member:
        changes, now = self._remembered.changes, self._storage.clock.now_ms()
        key = await self._storage.api_keys.find_by_hash(hashed)
        if key is None or not same(key.token_hash, hashed):
            raise Problem("UZ-AUTH-002", "no API key has this value")
        if key.revoked_at is not None:
            raise Problem("UZ-APIKEY-004", f"the key {key.key_name!r} was revoked")
        if key.expires_at is not None and now >= key.expires_at:
            raise Problem("UZ-AUTH-003", f"the key {key.key_name!r} has expired")
        owner = await self._owner(key.owner_id)
        if key.expires_at is not None and key.expires_at - now <= EXPIRES_SOON_MS:
            self._warn(key, now)
        await self._note_use(key.id, key.last_used_at, self._storage.api_keys.touch)
        tenant = await self._storage.tenants.load(key.tenant_id)
        if tenant is None:
            raise Problem("UZ-AUTH-002", "the key's tenant is gone")
        # Somebody whose role was lowered does not keep the higher one in his keys.
        rank = key.rank if owner is None else key.rank.capped(owner.rank)
        member = Member(
            key.tenant_id,
            tenant.plan_tier,
            rank.role,
            f"api:{key.id}",
            key.key_name,
            platform_admin=rank.platform_admin,
            person=key.owner_id,
            key=key.id,
            expires_at=key.expires_at,
        )
        if key.expires_at is None or key.expires_at - now > REMEMBER_S * 1000:
            self._remembered.remember(hashed, member, changes)
        return member

    def _warn(self, key: ApiKey, now: int) -> None:
        """Once a day for each key: who uses it is to have another in time."""
        last = self._warned.get(key.id)
        if last is not None and now - last < DAY_MS:
            return
        if len(self._warned) >= REMEMBER_COUNT:
            self._warned.clear()
        self._warned[key.id] = now
        log.warning("api_key_expires_soon", key=str(key.id), key_name=key.key_name, expires_at=key.expires_at)

    async def _delegate_by_key(self, hashed: bytes) -> Delegate:
        changes, keys = self._remembered.changes, self._storage.agent_keys
        key = await keys.find_by_hash(hashed)
        if key is None or not same(key.token_hash, hashed):
            raise Problem("UZ-AUTH-002", "no agent has a key of this value")
        await self._owner(key.owner_id)
        await self._note_use(key.id, key.last_used_at, keys.touch)
        tenant = await self._storage.tenants.load(key.tenant_id)
        if tenant is None:
            raise Problem("UZ-AUTH-002", "the key's tenant is gone")
        delegate = Delegate(
            key.id, key.tenant_id, key.workspace_id, key.zombie_id, tenant.plan_tier, key.owner_id
        )
        self._remembered.remember(hashed, delegate, changes)
        return delegate

    async def _owner(self, owner_id: UUID | None) -> User | None:
        """The owner of a key; None for one of the tenant's own. Raises Problem UZ-AUTH-001."""
        if owner_id is None:
            return None
        owner = await self._storage.users.load(owner_id)
        if owner is None:
            raise Problem("UZ-AUTH-002", "the key's owner is not known here")
        return _admitted(owner)

    async def _note_use(self, key_id: UUID, last_used_at: int | None, touch: Touch) -> None:
        now = self._storage.clock.now_ms()
        last = max(last_used_at or 0, self._used.get(key_id, 0))
        if now - last < KEY_USE_MS:
            return
        if len(self._used) >= REMEMBER_COUNT:
            self._used.clear()
        self._used[key_id] = now
        try:
            await touch([(key_id, now)])
        except StorageUnavailable:
            self._used.pop(key_id, None)

    async def _member_by_jwt(self, token: str, hashed: bytes) -> Member:
        issuer = self._issuers.get(_claimed_issuer(token))
        if issuer is None:
            raise Problem("UZ-AUTH-002", "the token is of no issuer that is known here")
        now_s = self._storage.clock.now_ms() / 1000
        claims = await issuer.verify(token, now_s)
        if claims.role not in _ROLES:
            raise Problem("UZ-AUTH-010", f"the role {claims.role!r} does not exist here")
        changes = self._remembered.changes
        browser = await self._browser_of(claims)
        tenant = await self._storage.tenants.load(claims.tenant_id)
        if tenant is None:
            raise Problem("UZ-AUTH-002", "the token's tenant does not exist")
        rank, person = Rank(Role(claims.role), claims.platform_admin), await self._person_of(claims)
        if person is not None and person.issuer is None:
            rank = rank.capped(person.rank)  # The token says what the role was when it was made.
        builtin = claims.issuer == self._builtin
        member = Member(
            tenant_id=claims.tenant_id,
            plan=tenant.plan_tier,
            role=rank.role,
            by=f"user:{claims.subject}",
            name=claims.subject,
            workspace_id=claims.workspace_id,
            platform_admin=rank.platform_admin,
            browser=browser,
            device=claims.device if builtin else None,
            user_id=as_id(claims.subject) if builtin else None,
            person=None if person is None else person.id,
            expires_at=claims.expires_at * 1000,
        )
        if claims.expires_at - now_s > REMEMBER_S:
            self._remembered.remember(hashed, member, changes)
        return member

    async def _person_of(self, claims: Claims) -> User | None:
        """Who is behind a token; None for whom only the token knows. Raises Problem UZ-AUTH-001."""
        if claims.issuer != self._builtin:
            subject = f"{claims.issuer}#{claims.subject}"
            stranger = User(
                id=self._new_id(),
                tenant_id=claims.tenant_id,
                subject=subject,
                role=Role(claims.role),
                platform_admin=claims.platform_admin,
                created_at=self._storage.clock.now_ms(),
                issuer=claims.issuer,
            )
            return _admitted(await self._storage.members.meet(stranger))
        user_id = as_id(claims.subject)
        user = None if user_id is None else await self._storage.users.load(user_id)
        return None if user is None else _admitted(user)

    async def _browser_of(self, claims: Claims) -> UUID | None:
        if claims.browser is None or claims.issuer != self._builtin:
            return None
        if not await self._browsers.note_token(claims.browser):
            raise Problem("UZ-AUTH-002", "the sign-in that this token belongs to has ended")
        return claims.browser


def _admitted(user: User) -> User:
    if not user.is_admitted:
        raise Problem(
            "UZ-AUTH-001", f"this person is {user.status.value}; an admin of the tenant can change that"
        )
    return user


class _Unverified(msgspec.Struct, frozen=True):
    iss: str = ""


def _claimed_issuer(token: str) -> str:
    """Only to choose who is to check it."""
    part = token.split(".")[1]
    try:
        return msgspec.json.decode(
            base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)), type=_Unverified
        ).iss
    except (binascii.Error, ValueError, msgspec.DecodeError, RecursionError):
        return ""
