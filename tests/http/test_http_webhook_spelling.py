"""What a sender wrote is what is kept, leased, shown and replayed: to the last digit of a number."""

import hashlib
import hmac

from tests.http.agent_life import at, report
from tests.http.house import SECRET, House

BODY = '{"action":"completed", "n": 123456789012345678901234567890, "price": 1.10, "huge": %s}' % ("9" * 400)


async def test_the_numbers_of_a_body_come_through_all_the_way(house: House) -> None:
    await house.keep_secret()
    zombie, token = await house.install(), await house.enrol()
    digest = hmac.new(SECRET.encode(), BODY.encode(), hashlib.sha256).hexdigest()
    headers = {"x-github-event": "workflow_run", "x-hub-signature-256": f"sha256={digest}"}
    answer = await house.http.post(zombie["webhook_urls"]["github"], content=BODY, headers=headers)
    assert answer.status_code == 202, answer.text
    leased = await house.post("/v1/runners/me/leases", {"wait_ms": 5000}, token)
    assert f'"raw":{BODY}' in leased.text
    await report(house, token, leased.json()["lease"])
    path = f"{at(house, zombie)}/events"
    replayed = await house.post(f"{path}/{answer.json()['event_id']}/replay")
    assert replayed.status_code == 202, replayed.text
    assert (await house.get(path)).text.count(f'"raw":{BODY}') == 2
