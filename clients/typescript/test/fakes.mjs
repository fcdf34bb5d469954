/** Servers that behave as the internet does, each on a port of its own on loopback. */

import { createServer } from "node:http";

import { Sexton } from "@sexton/client";

export const WORKSPACE = "0192f3a0-0000-7000-8000-000000000001";
export const EVENT = "0192f3a0-0000-7000-8000-000000000002";

/** Calls `body` with the address of a server that answers by `handler`; `seen` are its requests. */
export async function serving(handler, body) {
  const seen = [];
  const server = createServer((request, response) => {
    const parts = [];
    request.on("data", (part) => parts.push(part));
    request.on("end", () => {
      const told = { method: request.method, url: request.url, headers: request.headers, body: Buffer.concat(parts).toString() };
      seen.push(told);
      handler(told, response, seen.length);
    });
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    return await body(`http://127.0.0.1:${server.address().port}`, seen);
  } finally {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
}

export function client(baseUrl, more = {}) {
  return new Sexton({ baseUrl, token: "zmb_t_secret", workspaceId: WORKSPACE, retry: { firstPauseMs: 1 }, ...more });
}

export function json(response, value, status = 200, headers = {}) {
  response.writeHead(status, { "content-type": "application/json", ...headers });
  response.end(JSON.stringify(value));
}

export function problem(response, status, code, headers = {}) {
  const body = { error_code: code, title: "No", detail: "for a reason", status, request_id: "r-1", type: "about:blank", docs_uri: "", error: {} };
  response.writeHead(status, { "content-type": "application/problem+json", ...headers });
  response.end(JSON.stringify(body));
}

export function frame(id, kind, more = {}) {
  return `id: ${id}\nevent: ${kind}\ndata: ${JSON.stringify({ kind, event_id: EVENT, zombie_id: "z", at_ms: 1, ...more })}\n\n`;
}
