"""What is wrong with a request, or with the server that takes it."""

from typing import Final

from sexton_http.error_codes.code import ANSWER, Code

# fmt: off
ROWS: Final = (
    Code(
        "UZ-UUIDV7-009", 400, "Invalid ID shape", ANSWER,
        cause="An id in the path or the body is not a UUID.",
        way_out="Send the id as the server gave it, 36 characters such as `019346de-6400-7000-8000-000000000006`. A name is not taken here: the list of the resource tells its ids, and `sexton` finds them by name for you. An id that is cut off, quoted twice or still the word `null` is the usual reason.",
        detail="zombie_id is not a UUID",
    ),
    Code(
        "UZ-REQ-001", 400, "Invalid request", ANSWER,
        cause="A field of the body or the query is missing, malformed or out of bounds.",
        way_out="Read `detail`: it begins with the place of the fault, a JSON pointer such as `/message` for the body or the name of a query parameter. Compare that field with the route in the reference; `/openapi.json` has its schema. Fields that a route does not have are refused too, so look for a typing error. A cursor is used with the same filters that it came from. Sending the same request again does not help.",
        detail="limit: expected `int` >= 1", facts={"parameter": "limit"},
    ),
    Code(
        "UZ-REQ-002", 413, "Payload too large", ANSWER,
        cause="The body is larger than the route takes; the detail says how large it may be.",
        way_out="Send less: `detail` tells the limit of the route. Large content does not belong into a message; upload it as a file and name the file in the message.",
        detail="the body is over 16384 bytes",
    ),
    Code(
        "UZ-REQ-003", 404, "No such route", ANSWER,
        cause="No resource has this path.",
        way_out="Compare the path with the reference, letter by letter: it begins with `/v1`, has no slash at its end, and no part of it is empty. Behind a proxy, see whether the proxy cuts or adds a prefix. A newer client may know routes that this server's release lacks; `GET /healthz` tells its version.",
        detail="there is no such route",
    ),
    Code(
        "UZ-REQ-004", 405, "Method not allowed", ANSWER,
        cause="The path exists, but not with this method; see the Allow header.",
        way_out="Use one of the methods in the header `Allow`. A redirect that turned a POST into a GET does this as well: call the final address, with `https`, at once.",
        detail="this path does not take this method; see the Allow header",
    ),
    Code(
        "UZ-REQ-005", 415, "Unsupported media type", ANSWER,
        cause="The body is of another media type than the route takes, or is compressed; the detail names what was sent.",
        way_out="Send `Content-Type: application/json` and the body uncompressed. With curl that is `-H 'Content-Type: application/json'`; `-d` alone sends a form.",
        detail="the body must be application/json",
    ),
    Code(
        "UZ-REQ-006", 429, "Rate limit exceeded", ANSWER,
        cause="Wait for as long as Retry-After says.",
        way_out="Wait for the seconds in `Retry-After`, then send the same request again. Spread what you send, use the bulk form of the route, or follow a stream in place of asking repeatedly. The plan of the tenant says how many requests a second it has.",
        detail="the rate limit is reached; try again after Retry-After",
    ),
    Code(
        "UZ-REQ-007", 409, "Idempotent request still running", ANSWER,
        cause="The first request with this Idempotency-Key has no answer yet; try again later.",
        way_out="Send the same request with the same key again, after `Retry-After`: you get the answer of the first one. Do not take another key, which would do the work twice.",
        detail="the first request with this Idempotency-Key is still running",
    ),
    Code(
        "UZ-REQ-008", 422, "Idempotency key reused", ANSWER,
        cause="This Idempotency-Key was used with another body.",
        way_out="Take a new key for each new request, such as a UUID, and keep it only for repeats of that very request. If the body has a time or a random value in it, make it once and send the same bytes again.",
        detail="this Idempotency-Key was used with another request",
    ),
    Code(
        "UZ-REQ-009", 409, "Not possible in this state", ANSWER,
        cause="The current state does not allow this; current_state names it.",
        way_out="Read `current_state`, and look at the thing again: somebody, or time, has changed it since. Very often what you wanted has happened already. The states page says what may follow which state.",
        detail="The event is processed; there is nothing left to cancel.", facts={"current_state": "processed"},
    ),
    Code(
        "UZ-API-001", 429, "Too many requests in flight", ANSWER,
        cause="The server, or the share of the caller, is at its ceiling; try again after Retry-After.",
        way_out="Wait for `Retry-After` and send it again; nothing was done. If it goes on: have fewer requests under way at once. The operator sees on `/metrics` which ceiling is full, and can raise `--max-in-flight` or `--caller-share`, or add a server.",
        detail="the server has more to do than it can finish; try again after Retry-After",
    ),
    Code(
        "UZ-API-002", 503, "Too many streams", ANSWER,
        cause="The server, or the share of the caller, holds as many streams as it may.",
        way_out="Close streams that nobody reads, such as those of old browser tabs, and open one for the workspace in place of one for each agent. Then try again after `Retry-After`. The operator's bound is `--max-streams`.",
        detail="the caller has as many streams under way as it may; try again after Retry-After",
    ),
    Code(
        "UZ-API-003", 503, "Actor busy", ANSWER,
        cause="The mailbox was full, no reply came in time, or too many answers are under way to add this one.",
        way_out="Try again after `Retry-After`. A write that was answered so may have happened all the same, so send it again with the same `Idempotency-Key`. For a large list ask for fewer items (`limit`). If one agent is always busy, `sexton actor show` tells how long its queue is.",
        detail="the actor in charge is busy",
    ),
    Code(
        "UZ-API-004", 503, "Too many bytes in flight", ANSWER,
        cause="The bodies under way take as much memory as they may; try again after Retry-After.",
        way_out="Try again after `Retry-After`, with fewer large bodies at once. The operator's bound is `--max-body-memory`.",
        detail="the bodies under way take as much memory as they may; try again after Retry-After",
    ),
    Code(
        "UZ-API-005", 503, "Too many connections", ANSWER,
        cause="The server holds as many connections as it may, in all or from this address.",
        way_out="Use one client with a pool of connections, and close those that are idle. Where all clients come through one proxy, the operator names it with `--trusted-proxy`, so that it is not counted as one caller; the bounds are `--max-connections` and `--max-connections-per-address`.",
        detail="too many connections are open; try again after Retry-After",
    ),
    Code(
        "UZ-INTERNAL-001", 503, "Database unavailable", ANSWER,
        cause="The database cannot be reached; it is safe to try again.",
        way_out="Send it again after a few seconds, with the same `Idempotency-Key`; the server goes on by itself when the database is back. As the operator, look at `/readyz`, at the database's log, and at the address in `DATABASE_URL`.",
        detail="the database cannot be reached now",
    ),
    Code(
        "UZ-INTERNAL-002", 500, "Database error", ANSWER,
        cause="The database refused a statement that it should have accepted.",
        way_out="Repeating does not help. As the operator, look for the `request_id` in the server's log: it has the database's own words. A full disk and a schema that was changed by hand are the usual reasons.",
        detail="the database refused the operation",
    ),
    Code(
        "UZ-INTERNAL-003", 500, "Internal operation failed", ANSWER,
        cause="The server failed; look for the request id in its log.",
        way_out="This is a fault of the server, not of your request. Look for the `request_id` in its log and report what stands there, as the security page or the issue tracker says. Trying again once is safe with an `Idempotency-Key`.",
        detail="the server failed; look for the request id in its log",
    ),
)
# fmt: on
