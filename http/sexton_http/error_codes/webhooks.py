"""Deliveries of webhooks."""

from typing import Final

from sexton_http.error_codes.code import ANSWER, ANSWER_STREAM, Code

# fmt: off
ROWS: Final = (
    Code(
        "UZ-WH-001", 404, "Agent not found for webhook", ANSWER,
        cause="No agent has this id.",
        way_out="Copy the address again: `sexton webhook list` shows it for each agent. If the agent was deleted and installed again it has a new id, so enter the new address at the sender.",
        detail="no agent has the id 019346de-6400-7000-8000-000000000009",
    ),
    Code(
        "UZ-WH-002", 400, "Malformed webhook", ANSWER_STREAM,
        cause="The body is not JSON of the form that its source sends.",
        way_out="Let the sender send JSON (GitHub and Slack may also send a form with `payload`), in UTF-8 and uncompressed. `sexton webhook deliveries --verdict refused` lists what came, and `sexton webhook show DELIVERY --body` shows it byte by byte.",
        detail="the body is not JSON: Input data was truncated", facts={"reason": "webhook_rejected: malformed_body"},
    ),
    Code(
        "UZ-WH-003", 403, "Agent paused", ANSWER_STREAM,
        cause="The agent exists but is not active.",
        way_out="Resume the agent with `sexton agent resume NAME`. Then do the delivery again: `sexton webhook replay DELIVERY`, or send it again at the sender.",
        detail="The agent is stopped.", facts={"current_state": "stopped", "reason": "webhook_rejected: not_active"},
    ),
    Code(
        "UZ-WH-004", 410, "Agent killed", ANSWER,
        cause="The agent was killed; its webhooks are closed for good.",
        way_out="Killing is for good. Remove the webhook at the sender, or install the agent again and enter its new address there.",
        detail="The agent was killed.", facts={"current_state": "killed", "reason": "webhook_rejected: not_active"},
    ),
    Code(
        "UZ-WH-010", 401, "Invalid webhook signature", ANSWER_STREAM,
        cause="The signature is missing or malformed, or was made over other bytes or with another secret.",
        way_out="Enter the same secret on both sides: at the sender, and here with `sexton credentials set NAME --field webhook_secret`. See that nothing between them rewrites the body. `sexton webhook send AGENT` sends a delivery that is signed rightly, and `POST …/webhooks:verify` says what of a sample does not fit.",
        detail="the signature does not fit the body and the secret", facts={"reason": "webhook_rejected: signature_mismatch"},
    ),
    Code(
        "UZ-WH-011", 401, "Stale webhook timestamp", ANSWER_STREAM,
        cause="The timestamp is further from now than the trigger tolerates.",
        way_out="Set the clocks of both machines (NTP). A delivery that was kept back, or is replayed by hand with its old signature, is refused on purpose: have the sender sign it again. The trigger's `tolerance_seconds` may be up to 3600.",
        detail="the signed time is more than 300 s away from the server's", facts={"reason": "webhook_rejected: stale_timestamp"},
    ),
    Code(
        "UZ-WH-020", 401, "Webhook credential not configured", ANSWER_STREAM,
        cause="The vault has no secret for this source, or the path names none.",
        way_out="Keep the secret in the credential that the trigger names: `sexton credentials set NAME --field webhook_secret`. If `detail` speaks of the address, copy it again from `sexton webhook list`. Then replay the delivery: `sexton webhook replay DELIVERY`.",
        detail="the credential `github-hook` is not there or has no webhook_secret", facts={"reason": "webhook_rejected: credential_missing"},
    ),
    Code(
        "UZ-WH-030", 413, "Webhook payload too large", ANSWER_STREAM,
        cause="The body is over 1 MiB.",
        way_out="Have the sender send less: fewer events at once, or a reference in place of the content. The bound of 1 MiB is fixed.",
        detail="the body is over 1048576 bytes", facts={"reason": "webhook_rejected: too_large"},
    ),
    Code(
        "UZ-WH-040", 404, "Delivery not found", ANSWER,
        cause="The workspace has no delivery of this id, or its seven days are over.",
        way_out="`sexton webhook deliveries` lists those of the last seven days. For an older one have the sender send it again.",
        detail="the workspace has no delivery 019346de-6400-7000-8000-000000000019",
    ),
    Code(
        "UZ-WH-041", 410, "Body of delivery not kept", ANSWER,
        cause="An event has the body, or it was not read, or newer ones took its room.",
        way_out="If `detail` names an event, read its request: `sexton event show EVENT`. Otherwise have the sender send it again; GitHub, Stripe and others have a button for that. The operator's bound for kept bodies is `--webhook-bodies`.",
        detail="the body of this delivery is not kept; have its sender send it again",
    ),
)
# fmt: on
