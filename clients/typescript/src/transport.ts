/** Sends requests: with the token to the server and to nobody else, again where that is safe, within bounds. */

import { readJson, readProblem, unexpected } from "./body.js";
import { ConnectionError, refusal, SextonError, UnexpectedAnswerError } from "./errors.js";
import { pauseBefore, readRetryAfter, RETRY, type Attempt, type RetryPolicy, type Safety } from "./retry.js";
import { Deadline, sleep } from "./timing.js";
import { VERSION } from "./version.js";

export interface ClientSettings {
  /** Where the server is reached, such as `https://sexton.example`; a path in it is kept. */
  baseUrl: string;
  /** An API key or a user token, or a function that gives one; it is asked before every request. */
  token?: string | (() => string | Promise<string>);
  /** The workspace that calls are about which name none. */
  workspaceId?: string;
  /** How long one attempt may take, in ms. Waits and streams are apart. */
  timeoutMs?: number;
  retry?: Partial<RetryPolicy>;
  /** The longest answer that is read, in bytes. */
  mostBytes?: number;
  /** Stands in for the platform's own `fetch`. */
  fetch?: typeof fetch;
}

/** What may be said of any call. */
export interface CallOptions {
  /** Ends the call: it rejects with the signal's reason. */
  signal?: AbortSignal;
  /** Of a call that creates: the same key again gets the first answer again. One is made where none is given. */
  idempotencyKey?: string;
  /** How long one attempt may take, in ms. */
  timeoutMs?: number;
}

export interface Order {
  readonly method: string;
  /** With all parameters in it, and the query. */
  readonly path: string;
  readonly body?: unknown;
  readonly safety: Safety;
  readonly headers?: Readonly<Record<string, string>>;
}

const TIMEOUT_MS = 30_000;
const MOST_BYTES = 64 * 1024 * 1024;
const TOKEN = /^[!-~]+$/;

export class Transport {
  readonly retry: RetryPolicy;
  readonly #base: string;
  readonly #token: ClientSettings["token"];
  readonly #timeoutMs: number;
  readonly #mostBytes: number;
  readonly #fetch: typeof fetch;

  constructor(settings: ClientSettings) {
    const url = new URL(settings.baseUrl);
    if (!/^https?:$/.test(url.protocol) || url.username || url.password || url.search || url.hash) {
      throw new TypeError("baseUrl has to be an http or https address without credentials, query and fragment");
    }
    this.#base = url.href.replace(/\/+$/, "");
    this.#token = settings.token;
    this.#timeoutMs = settings.timeoutMs ?? TIMEOUT_MS;
    this.#mostBytes = settings.mostBytes ?? MOST_BYTES;
    this.#fetch = settings.fetch ?? globalThis.fetch.bind(globalThis);
    this.retry = { ...RETRY, ...settings.retry };
  }

  /** The answer's JSON, undefined for an answer without a body. */
  async json(order: Order, options: CallOptions = {}): Promise<unknown> {
    return this.#persist(order, options, (response) => readJson(response, this.#mostBytes));
  }

  /** An answer whose body is yet to be read, by the caller: a file, an export. Its end is not timed. */
  async raw(order: Order, options: CallOptions = {}): Promise<Response> {
    return this.#persist(order, options, undefined);
  }

  /** One attempt at an answer whose body is read under `deadline`. */
  async open(order: Order, deadline: Deadline): Promise<Response> {
    const response = await this.#attempt(order, deadline.signal);
    if (response.ok) return response;
    throw await this.#refused(response);
  }

  async #persist<T>(order: Order, options: CallOptions, read: ((response: Response) => Promise<T>) | undefined): Promise<T> {
    for (let made = 1; ; made++) {
      const deadline = new Deadline(options.signal);
      let handedOver = false;
      deadline.set(options.timeoutMs ?? this.#timeoutMs);
      try {
        const response = await this.open(order, deadline);
        if (read !== undefined) return await read(response);
        handedOver = true;
        return response as T;
      } catch (error) {
        if (options.signal?.aborted) throw options.signal.reason;
        const pause = pauseBefore(made, order.safety, attemptOf(error), this.retry, Math.random());
        if (pause === undefined) throw error;
        await sleep(pause, options.signal);
      } finally {
        if (!handedOver) deadline.close();
        else deadline.release();
      }
    }
  }

  async #attempt(order: Order, signal: AbortSignal): Promise<Response> {
    const headers = new Headers({ accept: "application/json", ...order.headers });
    const token = typeof this.#token === "function" ? await this.#token() : this.#token;
    if (token !== undefined) {
      if (!TOKEN.test(token)) throw new TypeError("the token has characters that no token has");
      headers.set("authorization", `Bearer ${token}`);
    }
    // A browser names itself, and would have to ask first whether it may say this.
    if (!("document" in globalThis)) headers.set("user-agent", `sexton-client-typescript/${VERSION}`);
    const body = encode(order.body, headers);
    let response: Response;
    try {
      response = await this.#fetch(this.#base + order.path, {
        method: order.method,
        headers,
        ...(body === undefined ? {} : { body }),
        // A redirect could lead to another host: the token does not go there.
        redirect: "manual",
        credentials: token === undefined ? "same-origin" : "omit",
        cache: "no-store",
        signal,
      });
    } catch (error) {
      throw signal.aborted && signal.reason instanceof SextonError ? signal.reason : lost(error, order);
    }
    if (response.type === "opaqueredirect" || (response.status >= 300 && response.status < 400)) {
      const place = response.headers.get("location") ?? "another address";
      response.body?.cancel().catch(() => undefined);
      throw new UnexpectedAnswerError(
        `the answer to ${order.method} ${order.path} was a redirect to ${place.slice(0, 200)}, which is not followed: give its host as baseUrl if it is the server`,
        response.status,
      );
    }
    return response;
  }

  async #refused(response: Response): Promise<SextonError> {
    const date = response.headers.get("date");
    const retryAfterMs = readRetryAfter(response.headers.get("retry-after"), date, Date.now());
    const { problem, text } = await readProblem(response);
    if (problem !== undefined) return refusal(response.status, problem, retryAfterMs);
    const error = unexpected(response.status, response.headers.get("content-type") ?? "", text);
    return retryAfterMs === undefined ? error : Object.assign(error, { retryAfterMs });
  }
}

function lost(error: unknown, order: Order): ConnectionError {
  const why = error instanceof Error ? causes(error) : String(error);
  return new ConnectionError(`no answer to ${order.method} ${order.path}: ${why}`, { cause: error });
}

/** Node's own message is "fetch failed"; why it did stands beneath. */
function causes(error: Error): string {
  return error.cause instanceof Error ? `${error.message}: ${error.cause.message}` : error.message;
}

/** What an error says about trying again. */
export function attemptOf(error: unknown): Attempt {
  if (error instanceof ConnectionError) return { status: 0, code: "", retryAfterMs: undefined };
  if (error instanceof SextonError) {
    const { status = -1, code = "", retryAfterMs } = error as Partial<Attempt>;
    return { status, code, retryAfterMs };
  }
  return { status: -1, code: "", retryAfterMs: undefined };
}

function encode(body: unknown, headers: Headers): BodyInit | undefined {
  if (body === undefined) return undefined;
  if (body instanceof FormData) return body;
  if (body instanceof Blob || body instanceof ArrayBuffer || ArrayBuffer.isView(body)) {
    headers.set("content-type", "application/octet-stream");
    return body as BodyInit;
  }
  headers.set("content-type", "application/json");
  return JSON.stringify(body);
}
