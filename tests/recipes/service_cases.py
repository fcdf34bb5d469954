"""Carries out the recipes that look at a service of one's own, or at what is sent to them."""

import gzip
import json
from hashlib import sha256
from urllib.parse import parse_qs, urlsplit

from tests.recipes.kitchen import Kitchen
from tests.recipes.stand_ins import NOT_FOUND, Answer, as_json, as_text
from tests.worlds.toolbox import Seen

DAYS = {"api.example.com": 5, "old.example.com": -2}
"""How long certificates last that are not of the usual length."""
BACKUP_TOKEN = "backup-canary-77a0c3e1"
GIB = 2**30


async def certificate_watch(kitchen: Kitchen) -> None:
    port = kitchen.outside.tls_port
    places = f"www.example.com:{port} api.example.com:{port} old.example.com:{port}"
    hosts = {"HOSTS: www.example.com api.example.com old.example.com": f"HOSTS: {places}"}
    cook = await kitchen.install("certificate-watch", **hosts)
    event = await cook.ended(await cook.tick(), "agent_error")

    good, soon, over = event["evidence"]["certificates"]
    assert good == {"host": "www.example.com", "days_left": 90}
    assert soon == {"host": "api.example.com", "days_left": 5, "problem": "ends soon"}
    assert over == {"host": "old.example.com", "problem": "certificate has expired"}
    assert "look at: api.example.com, old.example.com" in event["response_text"]


async def backup_check(kitchen: Kitchen) -> None:
    content = gzip.compress(b"insert into carts values (1);\n" * 1000)
    name = ["shop-2026-03-02.sql.gz"]

    def backups(seen: Seen) -> Answer:
        if seen.headers.get("authorization") != f"Bearer {BACKUP_TOKEN}":
            return as_text("who are you", status=401)
        if seen.target == "/nightly/latest.sha256":
            return as_text(f"{sha256(content).hexdigest()}  {name[0]}\n")
        # The one of the next day was cut on its way.
        whole = seen.target == "/nightly/shop-2026-03-02.sql.gz"
        return 200, {"content-type": "application/gzip"}, content if whole else content[:-40]

    kitchen.outside.services["backups.example.com"] = backups
    await kitchen.keep("backups", token=BACKUP_TOKEN)
    cook = await kitchen.install("backup-check")
    first = await cook.ended(await cook.tick())
    same = await cook.ended(await cook.tick(), "agent_error")
    content += b"\0"
    name[0] = "shop-2026-03-03.sql.gz"
    cut = await cook.ended(await cook.tick(), "agent_error")

    assert first["evidence"]["bytes"] == len(content) - 1
    assert first["evidence"]["backup"] == "shop-2026-03-02.sql.gz"
    assert "there is no new backup: shop-2026-03-02.sql.gz" in same["response_text"]
    assert "shop-2026-03-03.sql.gz is not what its checksum says" in cut["response_text"]


async def cost_watch(kitchen: Kitchen) -> None:
    """Ask the server of the test itself."""
    port, server = kitchen.outside.tls_port, kitchen.world.base_url.rpartition(":")[2]
    here = {
        f"https://sexton.example.com:{port}": f"http://sexton.example.com:{server}",
        f"[{port}]": f"[{server}]",
    }
    made = await kitchen.world.post("/v1/api-keys", {"key_name": "cost-watch", "role": "viewer"})
    assert made.status_code == 201, made.text
    await kitchen.keep("sexton", key=made.json()["key"])
    cook = await kitchen.install("cost-watch", **here)
    first = await cook.ended(await cook.tick())
    second = await cook.ended(await cook.tick())

    assert first["evidence"]["too_dear"] == second["evidence"]["too_dear"] == []
    (itself,) = [one for one in second["evidence"]["agents"] if one["agent"] == "cost-watch"]
    assert itself["runs"] == 1
    assert itself["usually"] == "0"


async def slow_query_report(kitchen: Kitchen) -> None:
    cook = await kitchen.install("slow-query-report")
    counters = json.loads(cook.payload("counters.json"))
    first = await cook.ended(await cook.deliver("", cook.payload("counters.json")))
    carts, orders = counters["statements"]
    carts |= {"calls": 1300, "total_exec_time": 2400.0 + 100 * 9}
    orders |= {"calls": 12, "total_exec_time": 9000.0 + 2 * 50}
    counters["statements"].append(
        {"queryid": "3", "calls": 1, "total_exec_time": 20.0, "query": "vacuum carts"}
    )
    sent = await cook.deliver("", json.dumps(counters).encode())
    second = await cook.ended(sent)

    assert [one["ms"] for one in first["evidence"]["top"]] == [9000.0, 2400.0]
    assert [(one["ms"], one["calls"], one["said"]) for one in second["evidence"]["top"]] == [
        (900.0, 100, "slower"),
        (100.0, 2, ""),
        (20.0, 1, "new"),
    ]
    assert second["evidence"]["slower"] == ["select * from carts where customer_id = $1"]
    assert "| 88% | 100 | 9.0 | slower |" in await cook.left(sent, "slow-queries.md")


async def log_digest(kitchen: Kitchen) -> None:
    cook = await kitchen.install("log-digest")
    posted = await cook.ended(await cook.deliver("", cook.payload("lines.json")))
    lines = [
        f"2026-03-03T08:53:{n % 60:02}Z INFO 10.0.4.{n % 250}:5{n} GET /cart/{n} 200 in {n} ms"
        for n in range(500)
    ]
    lines += ["2026-03-03T09:00:00Z FATAL out of memory at 0xdeadbeef"]
    brought = await cook.bring("What is in these?", app_log="\n".join(lines))
    event = await cook.ended(brought)

    found = [[one["evidence"][name] for name in ("lines", "patterns", "severe")] for one in (posted, event)]
    assert found == [[3, 2, 1], [501, 2, 1]]
    assert posted["evidence"]["new"] == []
    assert event["evidence"]["new"] == ["<time> FATAL out of memory at <hex>"]
    assert "     500  2026-03-03T08:53:00Z INFO" in await cook.left(brought, "digest.md")


PAGES = {
    "/": "<a href='guide.html'>guide</a> <a href='guide.html#setup'>setup</a> <a href='/gone.html'>gone</a>",
    "/guide.html": (
        "<h1 id='begin'>Guide</h1> <a href='/'>home</a> <img src='missing.png'>"
        " <a href='https://elsewhere.example/x'>elsewhere</a> <a href='mailto:a@example.com'>mail</a>"
    ),
}


async def link_checker(kitchen: Kitchen) -> None:
    def docs(seen: Seen) -> Answer:
        page = PAGES.get(urlsplit(seen.target).path)
        return NOT_FOUND if page is None else as_text(page, "text/html")

    kitchen.outside.services["docs.example.com"] = docs
    cook = await kitchen.install("link-checker")
    event_id = await cook.tick()
    event = await cook.ended(event_id, "agent_error")

    site = f"https://docs.example.com:{kitchen.outside.tls_port}"
    assert (event["evidence"]["pages"], event["evidence"]["links"]) == (4, 6)
    assert event["evidence"]["broken"] == [
        f"{site}/gone.html (404)",
        f"{site}/guide.html#setup (no such place on the page)",
        f"{site}/missing.png (404)",
    ]
    assert event["evidence"]["not_ours"] == ["elsewhere.example"]
    assert f"{site}/missing.png (404)\n    on {site}/guide.html" in await cook.left(
        event_id, "broken-links.txt"
    )


def interface(version: str, answered: dict[str, str], needed: list[str]) -> dict[str, object]:
    fields = {name: {"type": kind} for name, kind in answered.items()}
    cart = {"type": "object", "properties": fields, "required": list(answered)}
    body = {
        "type": "object",
        "properties": {"sku": {"type": "string"}, "count": {"type": "integer"}},
        "required": needed,
    }
    operation = {
        "requestBody": {"content": {"application/json": {"schema": body}}},
        "responses": {
            "200": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Cart"}}}}
        },
    }
    return {
        "info": {"version": version},
        "paths": {"/carts": {"post": operation}},
        "components": {"schemas": {"Cart": cart}},
    }


async def schema_drift_watch(kitchen: Kitchen) -> None:
    served = [interface("1.0", {"id": "integer", "total": "number"}, ["sku"])]
    kitchen.outside.services["api.example.com"] = lambda _: as_json(served[0])
    cook = await kitchen.install("schema-drift-watch")
    first = await cook.ended(await cook.tick())
    served[0] = interface("2.0", {"id": "string"}, ["sku", "count"])
    broken = [
        "POST /carts: body.count must be sent now",
        "POST /carts: 200.id was integer, and is string",
        "POST /carts: 200.total is not answered any more",
    ]
    refused = await cook.tick()
    gate = await cook.gate(refused)
    await cook.decide(gate, "deny", "that was a mistake")
    refused_event = await cook.ended(refused, "agent_error")
    accepted = await cook.tick()
    await cook.decide(await cook.gate(accepted), "approve", "meant so")
    accepted_event = await cook.ended(accepted)
    quiet = await cook.ended(await cook.tick())

    assert first["evidence"] == {"version": "1.0", "operations": 1, "accepted": True, "first": True}
    assert gate["evidence"]["breaks"] == broken
    assert refused_event["failure_label"] == "approval_denied"
    assert (refused_event["evidence"]["accepted"], refused_event["evidence"]["breaks"]) == (False, broken)
    assert (accepted_event["evidence"]["accepted"], accepted_event["evidence"]["breaks"]) == (True, broken)
    assert quiet["evidence"]["breaks"] == []


async def disk_forecast(kitchen: Kitchen) -> None:
    def prometheus(seen: Seen) -> Answer:
        parts = urlsplit(seen.target)
        asked = {name: values[0] for name, values in parse_qs(parts.query).items()}
        assert parts.path == "/api/v1/query_range"
        assert asked["query"].startswith("node_filesystem_avail_bytes")
        since, until = int(asked["start"]), int(asked["end"])
        span = range(since, until + 1, int(asked["step"]))
        day = 86_400
        grows = [[at, str((40 + 10 * (until - at) / day) * GIB)] for at in span]
        jumps = [[at, str((50 if at < since + day else 20) * GIB + at % 7)] for at in span]
        rests = [[at, str(100 * GIB)] for at in span]
        found = {"db1 /var": grows, "web1 /": jumps, "web2 /": rests}
        result = [
            {"metric": dict(zip(("instance", "mountpoint"), name.split(), strict=True)), "values": values}
            for name, values in found.items()
        ]
        return as_json({"status": "success", "data": {"resultType": "matrix", "result": result}})

    kitchen.outside.services["prometheus.internal"] = prometheus
    port = kitchen.outside.plain_port
    here = {":9090": f":{port}", f"[{kitchen.outside.tls_port}]": f"[{port}]"}
    cook = await kitchen.install("disk-forecast", **here)
    event = await cook.ended(await cook.tick(), "agent_error")

    assert event["evidence"]["soon"] == ["db1 /var"]
    assert event["evidence"]["first"][0] == {"disk": "db1 /var", "free_gib": 40.0, "full_in_days": 4.0}
    assert event["evidence"]["disks"] == 3
    assert "web2 /" in event["response_text"]
    assert "does not fill up" in event["response_text"]


INVOICES = """\
number,customer,amount,currency
R-1,Harbour Ltd,0.30,EUR
R-2,Quay and Sons,1200.00,EUR
R-3,Lighthouse,99.90,EUR
R-11,Pier,10.00,EUR
"""
BANK = """\
date,text,amount,currency
2026-03-02,R-1 first part,0.10,EUR
2026-03-03,R-1 second part,0.20,EUR
2026-03-05,Transfer of Lighthouse,99.90,EUR
2026-03-07,invoice r-2,1100.00,EUR
2026-03-09,Somebody else,10.00,EUR
"""


async def invoice_reconciliation(kitchen: Kitchen) -> None:
    cook = await kitchen.install("invoice-reconciliation")
    reminder = await cook.ended(await cook.tick(), "agent_error")
    brought = await cook.bring("March", invoices_csv=INVOICES, bank_csv=BANK)
    event = await cook.ended(brought)

    assert "bring the file invoices.csv" in reminder["response_text"]
    assert event["evidence"]["settled"] == 2
    assert event["evidence"]["open"] == "110.00"
    assert (await cook.left(brought, "differences.csv")).splitlines() == [
        "what,invoice,who,due,paid,difference",
        "underpaid,R-2,Quay and Sons,1200.00,1100.00,-100.00",
        "unpaid,R-11,Pier,10.00,0,-10.00",
        "unknown payment,,Somebody else,,10.00,10.00",
    ]


CASES = {
    "certificate-watch": certificate_watch,
    "backup-check": backup_check,
    "cost-watch": cost_watch,
    "slow-query-report": slow_query_report,
    "log-digest": log_digest,
    "link-checker": link_checker,
    "schema-drift-watch": schema_drift_watch,
    "disk-forecast": disk_forecast,
    "invoice-reconciliation": invoice_reconciliation,
}
