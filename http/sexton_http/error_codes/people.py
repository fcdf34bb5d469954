"""Who calls, with which token, key or sign-in."""

from typing import Final

from sexton_http.error_codes.code import ANSWER, Code

# fmt: off
ROWS: Final = (
    Code(
        "UZ-AUTH-001", 403, "Forbidden", ANSWER,
        cause="The token is valid but does not allow this.",
        way_out="Use a token that may do this: `detail` says what yours is limited to, and `sexton whoami` shows it. An agent's key reaches its own agent only. A person who was suspended asks an admin (`sexton member resume`).",
        detail="the token is limited to another workspace",
    ),
    Code(
        "UZ-AUTH-002", 401, "Unauthorized", ANSWER,
        cause="The token is missing or invalid.",
        way_out="Send `Authorization: Bearer TOKEN`. Sign in with `sexton login`, or have a key made with `sexton keys create`. Check that the token is whole, belongs to this server, and that a proxy does not drop the header.",
        detail="this needs a bearer token",
    ),
    Code(
        "UZ-AUTH-003", 401, "Token expired", ANSWER,
        cause="The user token or the API key has run out; get a new one.",
        way_out="Sign in again (`sexton login`), or have a new key made (`sexton keys create`) and put it where the old one was. If it has only just been made, compare the clocks of the machines.",
        detail="the token has expired",
    ),
    Code(
        "UZ-AUTH-004", 503, "Authentication service unavailable", ANSWER,
        cause="The identity provider cannot be reached.",
        way_out="Wait and try again: people who are signed in already go on. As the operator, see whether the server reaches the identity provider's address, through proxy and firewall, and whether `identity.toml` names the right issuer.",
        detail="the keys of https://id.example.com cannot be had",
    ),
    Code(
        "UZ-AUTH-005", 404, "Session not found", ANSWER,
        cause="No such auth session, or it has expired.",
        way_out="Begin again with `sexton login`: a login that is not approved lasts five minutes.",
        detail="There is no session 019346de-6400-7000-8000-00000000000f.",
    ),
    Code(
        "UZ-AUTH-006", 401, "Session expired", ANSWER,
        cause="The auth session expired before it was completed.",
        way_out="Begin again with `sexton login`, and approve it in the browser within five minutes.",
        detail="The session has expired; begin again.",
    ),
    Code(
        "UZ-AUTH-007", 409, "Session already complete", ANSWER,
        cause="The auth session was completed before.",
        way_out="Nothing is left to do for this session. If the terminal has no token, begin again with `sexton login`.",
        detail="The session was completed before.",
    ),
    Code(
        "UZ-AUTH-008", 503, "Session limit reached", ANSWER,
        cause="Too many auth sessions are open, in all or from this address.",
        way_out="Wait a few minutes, or end logins that nobody finishes (`sexton logout` does not reach them; they end by themselves after five minutes). The operator's bounds are `--max-device-logins` and `--max-device-logins-per-address`.",
        detail="As many sessions of your address are open as there is room for.",
    ),
    Code(
        "UZ-AUTH-009", 403, "Insufficient role", ANSWER,
        cause="The caller's role is too low.",
        way_out="Ask somebody of the role that `detail` names to do it, or an admin for a higher role (`sexton member role`). For a program, have a key of that role made (`sexton keys create --role`).",
        detail="this needs the role operator, the caller is user",
    ),
    Code(
        "UZ-AUTH-010", 403, "Unsupported role", ANSWER,
        cause="The token claims a role that does not exist here.",
        way_out="The identity provider sends a role that Sexton does not know. Have it send `viewer`, `user`, `operator` or `admin` in the claim `role`.",
        detail="the role 'owner' does not exist here",
    ),
    Code(
        "UZ-AUTH-011", 400, "Wrong verification code", ANSWER,
        cause="The six digits are not those on the approval page.",
        way_out="Type the six digits that the browser shows for this very login; `attempts_left` says how often you may try. After five wrong codes the login ends: begin again with `sexton login`.",
        detail="The code is not the one on the approval page.", facts={"attempts_left": 4},
    ),
    Code(
        "UZ-AUTH-012", 410, "Session consumed", ANSWER,
        cause="The token of this auth session was already collected.",
        way_out="A token is handed over once. Begin again with `sexton login`; if you did not collect it yourself, end the sign-in at once with `sexton sign-ins end`.",
        detail="The token was handed over before.",
    ),
    Code(
        "UZ-AUTH-013", 410, "Session aborted", ANSWER,
        cause="The auth session was ended, or too many codes were wrong.",
        way_out="Begin again with `sexton login`. If the wrong codes were not yours, tell your admin: somebody tried to take the token.",
        detail="Too many codes were wrong.",
    ),
    Code(
        "UZ-AUTH-014", 410, "Session not approved yet", ANSWER,
        cause="Nobody has approved this auth session.",
        way_out="Open the address that `sexton login` shows, sign in there and approve the terminal. A program asks again after a second or two, for five minutes.",
        detail="Nobody has approved the session yet.",
    ),
    Code(
        "UZ-AUTH-015", 409, "Session already approved", ANSWER,
        cause="The auth session was approved before.",
        way_out="Go back to the terminal and type the code that the approval page showed. If it is lost, begin again with `sexton login`.",
        detail="The session was approved before.",
    ),
    Code(
        "UZ-AUTH-016", 400, "Invalid public key", ANSWER,
        cause="The public key is not a P-256 key in SPKI form.",
        way_out="Send a fresh P-256 (secp256r1) public key, DER in SPKI form, as base64url without padding. `openssl ec -pubout -outform DER` writes that form.",
        detail="the public key is not the SPKI form of a P-256 key in base64url",
    ),
    Code(
        "UZ-AUTH-017", 400, "Invalid token name", ANSWER,
        cause="The token name is too long or has characters that are not allowed.",
        way_out="Choose a name of 1 to 64 printable characters, such as `laptop` (`sexton login --name laptop`).",
        detail="a token name is 1 to 64 printable characters",
    ),
    Code(
        "UZ-AUTH-018", 400, "Malformed verification code", ANSWER,
        cause="The verification code is not six digits.",
        way_out="Send the six digits as a string, without spaces, with zeros at its front kept.",
        detail="the verification code is six digits from 0 to 9",
    ),
    Code(
        "UZ-AUTH-019", 400, "Invalid ciphertext", ANSWER,
        cause="The ciphertext is not base64url, or has no room for its tag.",
        way_out="Send AES-GCM's ciphertext with its tag of sixteen bytes at the end, as base64url without padding.",
        detail="the ciphertext is not base64url of some bytes and a tag of sixteen",
    ),
    Code(
        "UZ-AUTH-020", 400, "Invalid nonce", ANSWER,
        cause="The nonce is not twelve bytes.",
        way_out="Send twelve fresh random bytes as base64url without padding: sixteen characters.",
        detail="the nonce is not base64url of twelve bytes",
    ),
    Code(
        "UZ-AUTH-021", 403, "Platform admin needed", ANSWER,
        cause="Only a platform admin may do this.",
        way_out="This concerns the whole server and not one tenant. Sign in as a platform admin: whoever runs the server gets a link with `sexton auth link`, on the server's machine. A program needs a key that was made with `--platform-admin`.",
        detail="only a platform admin may do this",
    ),
    Code(
        "UZ-APIKEY-003", 404, "API key not found", ANSWER,
        cause="The tenant has no key of this id.",
        way_out="`sexton keys list` shows the keys with their ids; it may have been deleted already.",
        detail="there is no key 019346de-6400-7000-8000-000000000007",
    ),
    Code(
        "UZ-APIKEY-004", 401, "API key revoked", ANSWER,
        cause="The key was revoked; use another.",
        way_out="Have a new key made (`sexton keys create NAME`) and put it where this one is used. A revoked key never comes back. If nobody of you revoked it, `sexton audit list` tells who did.",
        detail="the key 'deploy' was revoked",
    ),
    Code(
        "UZ-APIKEY-005", 409, "API key name taken", ANSWER,
        cause="The tenant, or the agent, already has a key with this name.",
        way_out="Choose another name, or revoke and delete the old key first (`sexton keys revoke`, `sexton keys delete`).",
        detail="there is a key named 'ci'",
    ),
    Code(
        "UZ-APIKEY-006", 409, "API key already revoked", ANSWER,
        cause="The key was revoked before.",
        way_out="Nothing is left to do: the key is without effect since `revoked_at`.",
        detail="'ci' was revoked before",
    ),
    Code(
        "UZ-APIKEY-007", 409, "API key cannot be re-activated", ANSWER,
        cause="A revoked key stays revoked; create another.",
        way_out="Make a new key (`sexton keys create`). That a revoked key stays revoked is what makes revoking safe.",
        detail="'ci' was revoked; create another",
    ),
    Code(
        "UZ-APIKEY-008", 409, "API key still active", ANSWER,
        cause="Revoke the key before you delete it.",
        way_out="Revoke it (`sexton keys revoke NAME`), see that nothing breaks, then delete it.",
        detail="'ci' is active; revoke it first",
    ),
    Code(
        "UZ-MEMBER-001", 404, "Member not found", ANSWER,
        cause="The tenant has no member of this id.",
        way_out="`sexton member list` shows the members and their ids. Somebody who has never signed in is invited first: `sexton member invite`.",
        detail="the tenant has no member 019346de-6400-7000-8000-000000000010",
    ),
    Code(
        "UZ-MEMBER-002", 409, "Last admin", ANSWER,
        cause="Nobody would be left who can admit people to the tenant, or run the platform.",
        way_out="Make somebody else an admin first (`sexton member role NAME admin`), then repeat this.",
        detail="nobody else could admit people to the tenant, or run the platform: make another admin first",
    ),
    Code(
        "UZ-MEMBER-003", 409, "Member known already", ANSWER,
        cause="Somebody of this subject signs in here already, to this tenant or another.",
        way_out="Look in `sexton member list`; a removed member is let in again with `sexton member invite` and its id. A subject belongs to one tenant only: use another account for a second tenant.",
        detail="there is a member 'https://id.example.com#42', here or elsewhere",
    ),
)
# fmt: on
