/** Calls against servers and proxies that misbehave. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { inspect } from "node:util";

import {
  ConflictError,
  ConnectionError,
  InvalidRequestError,
  isRefusal,
  NotFoundError,
  Sexton,
  TooManyRequestsError,
  UnauthorizedError,
  UnavailableError,
  UnexpectedAnswerError,
  WaitTimeoutError,
} from "@sexton/client";

import { client, EVENT, json, problem, serving, WORKSPACE } from "./fakes.mjs";

test("a refusal is an error of its status, with its code and what the code means", async () => {
  const kinds = [
    [400, "UZ-REQ-001", InvalidRequestError],
    [401, "UZ-AUTH-002", UnauthorizedError],
    [404, "UZ-EVENT-001", NotFoundError],
    [409, "UZ-REQ-009", ConflictError],
    [422, "UZ-REQ-008", InvalidRequestError],
    [500, "UZ-INTERNAL-003", UnavailableError],
  ];
  for (const [status, code, kind] of kinds) {
    await serving(
      (_, response) => problem(response, status, code),
      async (url, seen) => {
        const error = await client(url).events.get(EVENT).catch((caught) => caught);

        assert.ok(error instanceof kind, `${error}`);
        assert.equal(error.code, code);
        assert.equal(error.requestId, "r-1");
        assert.ok(error.means.length > 10 && isRefusal(error, code) && !isRefusal(error, "UZ-FILE-001"));
        assert.equal(seen.length, 1);
      },
    );
  }
});

test("a call that creates is repeated under one key, whatever swallowed the first answer", async () => {
  await serving(
    (_, response, number) => {
      if (number === 1) response.destroy();
      else if (number === 2) response.writeHead(502, { "content-type": "text/html" }).end("<h1>Bad gateway</h1>");
      else if (number === 3) problem(response, 409, "UZ-REQ-007", { "retry-after": "0" });
      else json(response, { event_id: EVENT, status: "accepted" }, 202);
    },
    async (url, seen) => {
      const sent = await client(url).agents.send("0192f3a0-0000-7000-8000-00000000000a", "hello");

      assert.equal(sent.event_id, EVENT);
      const keys = seen.map((request) => request.headers["idempotency-key"]);
      assert.equal(keys.length, 4);
      assert.equal(new Set(keys).size, 1);
      assert.match(keys[0], /^js-[0-9a-f]{32}$/);
    },
  );
});

test("a call that would act twice is not repeated once it may have reached the work", async () => {
  const gate = "0192f3a0-0000-7000-8000-00000000000b";
  await serving(
    (_, response) => response.destroy(),
    async (url, seen) => {
      await assert.rejects(client(url).approvals.approve(gate), ConnectionError);
      assert.equal(seen.length, 1);
    },
  );
  await serving(
    (_, response, number) =>
      number < 3 ? problem(response, 429, "UZ-REQ-006", { "retry-after": "0" }) : json(response, { gate_id: gate }),
    async (url, seen) => {
      await client(url).approvals.approve(gate);
      assert.equal(seen.length, 3);
    },
  );
});

test("Retry-After is kept to, as seconds and as a date of the server's own clock; too long a wait is no wait", async () => {
  const elsewhen = Date.now() + 86_400_000;
  const dates = { "retry-after": new Date(elsewhen + 1000).toUTCString(), date: new Date(elsewhen).toUTCString() };
  await serving(
    (_, response, number) => (number === 1 ? problem(response, 503, "UZ-API-003", dates) : json(response, { ended: true })),
    async (url) => {
      const began = Date.now();
      await client(url).events.get(EVENT);
      assert.ok(Date.now() - began >= 990);
    },
  );
  await serving(
    (_, response) => problem(response, 429, "UZ-REQ-006", { "retry-after": "3600" }),
    async (url, seen) => {
      const error = await client(url).events.get(EVENT).catch((caught) => caught);
      assert.ok(error instanceof TooManyRequestsError);
      assert.equal(error.retryAfterMs, 3_600_000);
      assert.equal(seen.length, 1);
    },
  );
});

test("the token follows no redirect, and shows nowhere", async () => {
  await serving(
    (_, response) => json(response, {}),
    async (thief, stolen) => {
      for (const status of [301, 302, 303, 307, 308]) {
        await serving(
          (_, response) => response.writeHead(status, { location: `${thief}/v1/whoami` }).end(),
          async (url, seen) => {
            await assert.rejects(client(url).whoami(), UnexpectedAnswerError);
            assert.equal(seen.length, 1);
          },
        );
      }
      assert.equal(stolen.length, 0);
    },
  );
  assert.doesNotMatch(inspect(client("http://127.0.0.1:1"), { depth: 9, showHidden: true }), /zmb_t_secret/);
  assert.doesNotMatch(JSON.stringify(client("http://127.0.0.1:1")), /zmb_t_secret/);
});

test("what a proxy says is told as what it is: an error page, half an answer, no JSON, too much of it", async () => {
  const page = "<html><body><h1>504 Gateway Time-out</h1></body></html>";
  const answers = [
    (response) => response.writeHead(504, { "content-type": "text/html" }).end(page),
    (response) => response.writeHead(200, { "content-type": "text/html" }).end(page),
    (response) => response.writeHead(200, { "content-type": "application/json" }).end('{"ended": tr'),
    (response) => response.writeHead(200, { "content-type": "application/json" }).end(`"${"x".repeat(5000)}"`),
  ];
  for (const answer of answers) {
    await serving(
      (_, response) => answer(response),
      async (url) => {
        const error = await client(url, { retry: { attempts: 1 }, mostBytes: 4096 }).events.get(EVENT).catch((caught) => caught);
        assert.ok(error instanceof UnexpectedAnswerError, `${error}`);
        assert.ok(error.message.length < 600);
      },
    );
  }
  await serving(
    (_, response) => {
      response.writeHead(200, { "content-type": "application/json", "content-length": "100" });
      response.write('{"ended":', () => response.destroy());
    },
    async (url, seen) => {
      await assert.rejects(client(url, { retry: { attempts: 2, firstPauseMs: 1 } }).events.get(EVENT), ConnectionError);
      assert.equal(seen.length, 2);
    },
  );
});

test("a server that says nothing is given up, and a caller can go at any time", async () => {
  await serving(
    () => undefined,
    async (url, seen) => {
      const patient = client(url, { timeoutMs: 50, retry: { attempts: 2, firstPauseMs: 1 } });
      await assert.rejects(patient.whoami(), ConnectionError);
      assert.equal(seen.length, 2);
      const controller = new AbortController();
      const asked = client(url).whoami({ signal: controller.signal });
      controller.abort(new Error("gone"));
      await assert.rejects(asked, /gone/);
      await assert.rejects(client(url).whoami({ signal: controller.signal }), /gone/);
    },
  );
});

test("lists are read to their end, by cursor and by number, over pages that are empty", async () => {
  const pages = [
    { items: [{ event_id: "1" }], next_cursor: "a" },
    { items: [], next_cursor: "b" },
    { items: [{ event_id: "2" }, { event_id: "3" }], next_cursor: null },
  ];
  await serving(
    (_, response, number) => json(response, pages[number - 1]),
    async (url, seen) => {
      const found = [];
      for await (const event of client(url).events.list({ limit: 2, since: "1h", status: "processed" })) found.push(event.event_id);

      assert.deepEqual(found, ["1", "2", "3"]);
      assert.deepEqual(
        seen.map((request) => request.url.split("?")[1]),
        ["limit=2&since=1h&status=processed", "limit=2&status=processed&cursor=a", "limit=2&status=processed&cursor=b"],
      );
    },
  );
  await serving(
    ({ url }, response) => {
      const page = Number(new URL(url, "http://x").searchParams.get("page") ?? 1);
      json(response, { items: page > 2 ? [] : [page * 2 - 1, page * 2].slice(0, 4 - page), total: 3, page, page_size: 2 });
    },
    async (url, seen) => {
      assert.equal((await client(url).keys.list({ page_size: 2 }).take(99)).length, 4);
      assert.equal(seen.length, 2);
    },
  );
  await serving(
    (_, response) => json(response, { items: [1], next_cursor: "same" }),
    async (url, seen) => {
      await assert.rejects(client(url).events.list().take(99), UnexpectedAnswerError);
      assert.equal(seen.length, 2);
      assert.deepEqual(await client(url).events.list().take(1), [1]);
      assert.equal(seen.length, 3);
    },
  );
});

test("waiting asks again until the event has ended, and no longer than it was told to", async () => {
  await serving(
    (_, response, number) => json(response, { event_id: EVENT, ended: number > 1 }),
    async (url, seen) => {
      const event = await client(url).events.wait(EVENT, { timeoutMs: 60_000 });
      assert.equal(event.event_id, EVENT);
      assert.match(seen[0].url, /wait_ms=30000/);
    },
  );
  await serving(
    (_, response) => json(response, { event_id: EVENT, ended: false }),
    async (url, seen) => {
      await assert.rejects(client(url).events.wait(EVENT, { timeoutMs: 100 }), WaitTimeoutError);
      assert.ok(seen.length <= 3, `${seen.length} calls`);
    },
  );
});

test("parameters cannot become another path, and a call without its workspace says what to do", async () => {
  await serving(
    (_, response) => json(response, {}),
    async (url, seen) => {
      await client(url).events.get("../../x?y#z");
      assert.equal(seen[0].url, `/v1/workspaces/${WORKSPACE}/events/..%2F..%2Fx%3Fy%23z`);
      await assert.rejects(client(url).events.get(".."), TypeError);
      await assert.rejects(client(url).events.get(""), TypeError);
      await assert.rejects(new Sexton({ baseUrl: url }).events.get(EVENT), /workspaceId/);
      await new Sexton({ baseUrl: `${url}/sexton/`, token: async () => "late" }).whoami();
      assert.equal(seen[1].url, "/sexton/v1/whoami");
      assert.equal(seen[1].headers.authorization, "Bearer late");
      await assert.rejects(new Sexton({ baseUrl: url, token: "a\nb" }).whoami(), TypeError);
    },
  );
  for (const bad of ["ftp://x", "http://u:p@x", "http://x?a=b", "nonsense"]) {
    assert.throws(() => new Sexton({ baseUrl: bad }), TypeError);
  }
});
