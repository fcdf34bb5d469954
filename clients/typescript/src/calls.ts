/** Calls of any operation, by its name in the OpenAPI document. */

import { OPERATIONS } from "./operations.js";
import { Listing } from "./paging.js";
import { follow, type Frame, type StreamOptions } from "./stream.js";
import { Transport, type CallOptions, type ClientSettings, type Order } from "./transport.js";
import type { Answer, Arguments, Input, Item, ListName, OperationName } from "./types.js";

export type StreamName = "stream_events" | "stream_workspace_events";

export class Calls {
  readonly workspaceId: string | undefined;
  readonly #transport: Transport;

  constructor(settings: ClientSettings) {
    this.#transport = new Transport({ ...settings });
    this.workspaceId = settings.workspaceId;
  }

  /** Any operation of the interface that answers with JSON. */
  async call<N extends OperationName>(name: N, ...[input, options]: Arguments<N, CallOptions>): Promise<Answer<N>> {
    return (await this.#transport.json(this.#order(name, input ?? {}, options), options)) as Answer<N>;
  }

  /** Any operation, with its answer as it came: files, exports, pages. Refusals are thrown here too. */
  raw<N extends OperationName>(name: N, ...[input, options]: Arguments<N, CallOptions>): Promise<Response> {
    return this.#transport.raw(this.#order(name, input ?? {}, options), options);
  }

  /** A list, fetched page by page as it is read. */
  list<N extends ListName>(name: N, ...[input, options]: Arguments<N, CallOptions>): Listing<Answer<N>, Item<N>> {
    const fetch = async (asked: Record<string, unknown>): Promise<Answer<N>> =>
      (await this.#transport.json(this.#order(name, asked, options), options)) as Answer<N>;
    return new Listing(fetch, (input ?? {}) as Record<string, unknown>);
  }

  /** What happens, as it happens, over cut connections and restarts of the server. */
  stream<N extends StreamName>(name: N, input: Input<N>, options: StreamOptions = {}): AsyncGenerator<Frame, void, undefined> {
    return follow(this.#transport, this.#order(name, input as object).path, options);
  }

  #order(name: OperationName, input: object, options: CallOptions = {}): Order {
    const { method, path, keyed } = OPERATIONS[name] as Operation;
    const { body, ...rest } = input as Record<string, unknown>;
    const named: Record<string, unknown> = { workspace_id: this.workspaceId, ...defined(rest) };
    const used = new Set<string>();
    const filled = path.replace(/\{(\w+)\}/g, (_, parameter: string) => {
      used.add(parameter);
      return segment(name, parameter, named[parameter]);
    });
    const query = new URLSearchParams();
    for (const [key, value] of Object.entries(defined(rest))) if (!used.has(key)) query.append(key, String(value));
    const order = { method, path: String(query) === "" ? filled : `${filled}?${query}`, body };
    if (!keyed) return { ...order, safety: method === "POST" || method === "PATCH" ? "once" : "repeatable" };
    // One key for all attempts at this call, so that it is done once.
    return { ...order, safety: "keyed", headers: { "idempotency-key": options.idempotencyKey ?? randomKey() } };
  }
}

interface Operation {
  readonly method: string;
  readonly path: string;
  /** It takes an Idempotency-Key. */
  readonly keyed?: true;
}

function defined(fields: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined && value !== null));
}

/** A parameter as one segment of a path: what would make another path of it is refused. */
function segment(name: string, parameter: string, value: unknown): string {
  const text = typeof value === "string" || typeof value === "number" ? String(value) : "";
  if (text === "" || text === "." || text === "..") {
    const where = parameter === "workspace_id" ? ": give the client a workspaceId, or the call a workspace_id" : "";
    throw new TypeError(`${name} needs ${parameter}${where}`);
  }
  return encodeURIComponent(text);
}

/** Unlike `randomUUID`, this is there in pages that did not come over TLS, and in Node 18. */
function randomKey(): string {
  const bytes = new Uint8Array(16);
  if (globalThis.crypto === undefined) bytes.forEach((_, at) => (bytes[at] = Math.floor(Math.random() * 256)));
  else globalThis.crypto.getRandomValues(bytes);
  return `js-${Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}
