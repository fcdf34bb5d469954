"""What a sender wrote is what is kept, leased, shown and replayed: to the last digit of a number."""

import hashlib
import hmac

from tests.worlds.http import HttpWorld
from tests.worlds.http_agents import at, report
from tests.worlds.samples import SECRET

BODY = '{"action":"completed", "n": 123456789012345678901234567890, "price": 1.10, "huge": %s}' % ("9" * 400)


async def test_the_numbers_of_a_body_come_through_all_the_way(world: HttpWorld) -> None:
    await world.keep_secret()
    zombie, token = await world.install(), await world.enrol()
    digest = hmac.new(SECRET.encode(), BODY.encode(), hashlib.sha256).hexdigest()
    headers = {"x-github-event": "workflow_run", "x-hub-signature-256": f"sha256={digest}"}
    answer = await world.http.post(zombie["webhook_urls"]["github"], content=BODY, headers=headers)
    assert answer.status_code == 202, answer.text

    leased = await world.post("/v1/runners/me/leases", {"wait_ms": 5000}, token)
    assert f'"raw":{BODY}' in leased.text

    await report(world, token, leased.json()["lease"])
    path = f"{at(world, zombie)}/events"
    replayed = await world.post(f"{path}/{answer.json()['event_id']}/replay")
    assert replayed.status_code == 202, replayed.text
    assert (await world.get(path)).text.count(f'"raw":{BODY}') == 2
