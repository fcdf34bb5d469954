"""What is answered about members."""

from uuid import UUID

from sexton_http.bodies.shapes import Shape
from sexton_storage.records.users import MemberStatus, Role


class MemberItem(Shape):
    id: UUID
    name: str
    subject: str
    """Provider or issuer and subject, as in `https://id.example.com#42`."""
    issuer: str | None
    """The issuer of the tokens that the member comes with; null: the member signs in at this server."""
    role: Role
    """For somebody from elsewhere: as the last token said."""
    platform_admin: bool
    status: MemberStatus
    created_at: int
    changed_at: int | None
    changed_by: str


class MemberPage(Shape):
    items: list[MemberItem]
    total: int
    page: int
    page_size: int


class Invited(Shape):
    member: MemberItem
    sign_in_url: str
    """Signs one browser in, once; shown in this answer only."""
    expires_at: int


class Removed(Shape):
    member: MemberItem
    sign_ins_ended: int
    keys_ended: int
    keys_handed_over: int
