"""What may become of a member, and what nobody may do to one."""

from msgspec.structs import replace

from sexton_storage.records.members import MemberChange, MemberRefusal
from sexton_storage.records.users import MemberStatus, Rank, Role, User


def is_tenant_admin(user: User) -> bool:
    """Whether the person can admit others; one who comes from elsewhere is what an issuer says."""
    return user.is_admitted and user.role is Role.ADMIN and user.issuer is None


def is_platform_admin(user: User) -> bool:
    """Whether the person can run the platform."""
    return user.is_admitted and user.platform_admin and user.issuer is None


def change(
    member: User, asked: MemberChange, now: int, *, tenant_admins: int, platform_admins: int
) -> User | MemberRefusal:
    """The member as he is to be; the same where nothing changes.

    ``tenant_admins`` and ``platform_admins`` are how many there are, the member among them.

    >>> from uuid import UUID
    >>> ann = User(UUID(int=1), UUID(int=2), "ann", Role.ADMIN, platform_admin=False, created_at=0)
    >>> def asked(**what):
    ...     return MemberChange("user:bo", what.pop("rank", Rank(Role.ADMIN)), **what)
    >>> def tried(member, admins=2, **what):
    ...     done = change(member, asked(**what), 7, tenant_admins=admins, platform_admins=1)
    ...     return done.value if isinstance(done, MemberRefusal) else f"{done.role} {done.status}"
    >>> tried(ann, role=Role.USER), tried(ann, status=MemberStatus.SUSPENDED)
    ('user active', 'admin suspended')
    >>> tried(ann, status=MemberStatus.REMOVED, admins=1), tried(ann, role=Role.OPERATOR, admins=1)
    ('last admin', 'last admin')
    >>> tried(ann, role=Role.USER, rank=Rank(Role.OPERATOR))
    'above'
    >>> gone = replace(ann, status=MemberStatus.REMOVED)
    >>> tried(gone, status=MemberStatus.ACTIVE), tried(gone, invites=True, role=Role.USER)
    ('not now', 'user active')
    >>> tried(replace(ann, issuer="https://ci.example.com"), role=Role.USER)
    'elsewhere'
    """
    role, status = asked.role or member.role, _status(member, asked)
    if not asked.rank.covers(member.rank) or not asked.rank.covers(Rank(role, member.platform_admin)):
        return MemberRefusal.ABOVE
    if status is None:
        return MemberRefusal.NOT_NOW
    if role is not member.role and member.issuer is not None:
        return MemberRefusal.ELSEWHERE
    after = replace(member, role=role, status=status)
    if after == member:
        return member
    for counts, others in ((is_tenant_admin, tenant_admins), (is_platform_admin, platform_admins)):
        if counts(member) and not counts(after) and others <= 1:
            return MemberRefusal.LAST_ADMIN
    return replace(after, changed_at=now, changed_by=asked.by)


def _status(member: User, asked: MemberChange) -> MemberStatus | None:
    """None for what cannot be asked of somebody who stands as the member does."""
    match member.status, asked.invites:
        case (MemberStatus.SUSPENDED, True):
            return None
        case (_, True):
            return MemberStatus.ACTIVE
        case (MemberStatus.REMOVED, False):
            again = asked.status is MemberStatus.REMOVED and asked.role is None
            return MemberStatus.REMOVED if again else None
        case _:
            return asked.status or member.status
