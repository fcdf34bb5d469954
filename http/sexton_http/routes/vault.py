"""The vault's master keys: which there are, what each has sealed, and how a newer one takes over."""

from sexton_actors.protocol.vault import ReadVault, Rotate, VaultState
from sexton_actors.refusal import Refusal
from sexton_http.bodies.shapes import Shape
from sexton_http.gateway.call import Call
from sexton_http.gateway.operations import Auth, Creates, NoBody, NoQuery, operation

TAG = "Vault"


class KeyUse(Shape):
    version: int
    secrets: int
    """That this master key has sealed."""
    seals: bool


class VaultView(Shape):
    keys: list[KeyUse]
    """Oldest first."""
    stale: int
    """Secrets that wait to be put under the key that seals."""
    source: str
    """`file`: the server keeps its keys itself; `environment`: the operator gives them."""


@operation("GET", "/v1/admin/vault", tag=TAG, auth=Auth.PLATFORM, codes=("UZ-REQ-003",))
async def show_vault(call: Call[NoBody, NoQuery]) -> VaultView | Refusal:
    """Show the master keys by number, and how many secrets are under each."""
    state = await call.ctx.system.ask("vault_keeper", "", ReadVault())
    return state if isinstance(state, Refusal) else _view(state)


@operation(
    "POST",
    "/v1/admin/vault/rotations",
    tag=TAG,
    auth=Auth.PLATFORM,
    status=202,
    codes=("UZ-REQ-003", "UZ-REQ-001"),
    creates=Creates.ONCE,
)
async def rotate_vault(call: Call[NoBody, NoQuery]) -> VaultView | Refusal:
    """Make a newer master key and put all secrets under it while everything goes on.

    While an earlier rotation is under way, this goes on with that one. The older key is forgotten ten minutes
    after the last secret has left it.
    """
    state = await call.ctx.system.ask("vault_keeper", "", Rotate())
    return state if isinstance(state, Refusal) else _view(state)


def _view(state: VaultState) -> VaultView:
    return VaultView(
        keys=[
            KeyUse(version, count, seals=version == state.sealing_version)
            for version, count in state.secrets.items()
        ],
        stale=state.stale,
        source="file" if state.keeps_its_keys else "environment",
    )
