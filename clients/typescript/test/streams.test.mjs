/** Streams that are cut, repeated, silent, endless or no streams at all. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { NotFoundError, UnauthorizedError, UnexpectedAnswerError } from "@sexton/client";

import { client, frame, problem, serving } from "./fakes.mjs";

const AGENT = "0192f3a0-0000-7000-8000-00000000000a";
const OPEN = { "content-type": "text/event-stream" };

async function take(stream, most) {
  const taken = [];
  for await (const one of stream) {
    taken.push(one);
    if (taken.length === most) break;
  }
  return taken;
}

test("a stream that is cut anywhere goes on after the last whole frame", async () => {
  const all = Array.from({ length: 6 }, (_, at) => frame(at + 1, "chunk", { text: `é${at}` }));
  await serving(
    ({ headers }, response, number) => {
      const from = Number(headers["last-event-id"] ?? 0);
      const start = Buffer.from(`retry: 1\nid: ${from}\n\n${number === 1 ? "" : ": keep\r\n\r\n"}`);
      const rest = Buffer.from(all.slice(from).join(""));
      response.writeHead(200, OPEN);
      // Byte by byte, and off in the middle of one.
      const most = number < 9 ? 70 + number * 23 : rest.length;
      for (const byte of Buffer.concat([start, rest.subarray(0, most)])) response.write(Buffer.of(byte));
      response.end(() => response.destroy());
    },
    async (url, seen) => {
      const frames = await take(client(url).agents.stream(AGENT), 6);

      assert.deepEqual(frames.map((one) => one.id), ["1", "2", "3", "4", "5", "6"]);
      assert.deepEqual(frames.map((one) => one.text), ["é0", "é1", "é2", "é3", "é4", "é5"]);
      assert.ok(seen.length > 2);
      assert.equal(seen[0].headers["last-event-id"], undefined);
    },
  );
});

test("a stream that is cut before its first frame begins where it began", async () => {
  await serving(
    (_, response, number) => {
      response.writeHead(200, OPEN);
      if (number === 1) response.end("retry: 1\nid: 41\n\n");
      else response.write(`retry: 1\nid: 41\n\n${frame(41, "chunk")}${frame(42, "event_complete")}`);
    },
    async (url, seen) => {
      const [first] = await take(client(url).agents.stream(AGENT), 1);

      assert.equal(first.id, "42");
      assert.equal(seen[1].headers["last-event-id"], "41");
    },
  );
});

test("frames that are gone are told of, and a place that went back is believed", async () => {
  await serving(
    (_, response, number) => {
      response.writeHead(200, OPEN);
      if (number === 1) response.end(`retry: 1\nid: 9\n\n${frame(99, "resync", { oldest_id: 100 })}${frame(100, "chunk")}`);
      else response.write(`retry: 1\nid: 7\n\n${frame(8, "chunk")}`);
    },
    async (url) => {
      const frames = await take(client(url).agents.stream(AGENT, { lastEventId: "9" }), 3);
      assert.deepEqual(frames.map(({ id, kind }) => `${kind} ${id}`), ["resync 99", "chunk 100", "chunk 8"]);
    },
  );
});

test("a server that is away is waited for, one that refuses is not, and nobody waits for ever", async () => {
  await serving(
    (_, response, number) => {
      if (number === 1) response.destroy();
      else if (number === 2) problem(response, 503, "UZ-API-002", { "retry-after": "0" });
      else if (number === 3) response.writeHead(502, { "content-type": "text/html" }).end("<h1>no</h1>");
      else response.writeHead(200, OPEN).write(frame(1, "chunk"));
    },
    async (url, seen) => {
      const errors = [];
      await take(client(url).agents.stream(AGENT, { onReconnect: (error) => errors.push(error?.name) }), 1);
      assert.deepEqual(errors, ["ConnectionError", "UnavailableError", "UnexpectedAnswerError"]);
      assert.equal(seen.length, 4);
    },
  );
  for (const [status, code, kind] of [[404, "UZ-ZMB-009", NotFoundError], [401, "UZ-AUTH-003", UnauthorizedError]]) {
    await serving(
      (_, response) => problem(response, status, code),
      (url) => assert.rejects(take(client(url).agents.stream(AGENT), 1), kind),
    );
  }
  const gone = client("http://127.0.0.1:1").agents.stream(AGENT, { giveUpAfterMs: 0 });
  await assert.rejects(take(gone, 1), /no answer/);
});

test("a silent connection is opened again", async () => {
  await serving(
    (_, response, number) => {
      response.writeHead(200, OPEN);
      response.write(number === 1 ? "retry: 1\nid: 3\n\n" : frame(4, "chunk"));
    },
    async (url) => {
      const [first] = await take(client(url).agents.stream(AGENT, { silenceMs: 60 }), 1);
      assert.equal(first.id, "4");
    },
  );
});

test("what is no stream, no JSON, or a line without end is an error and no memory", async () => {
  const answers = [
    (response) => response.writeHead(200, { "content-type": "text/html" }).end("<h1>hello</h1>"),
    (response) => response.writeHead(200, OPEN).end("id: 1\nevent: chunk\ndata: {\n\n"),
    (response) => {
      response.writeHead(200, OPEN);
      const flood = () => response.destroyed || response.write("data: ".padEnd(1 << 20, "x"), flood);
      flood();
    },
  ];
  for (const answer of answers) {
    await serving(
      (_, response) => answer(response),
      (url) => assert.rejects(take(client(url).agents.stream(AGENT), 1), UnexpectedAnswerError),
    );
  }
});

test("who stops reading leaves no connection behind, and a signal ends the wait for more", async () => {
  await serving(
    (_, response) => response.writeHead(200, OPEN).write(frame(1, "chunk")),
    async (url) => {
      const controller = new AbortController();
      const stream = client(url).events.stream({ signal: controller.signal });
      await stream.next();
      const more = stream.next();
      controller.abort(new Error("enough"));
      await assert.rejects(more, /enough/);
    },
  );
});
