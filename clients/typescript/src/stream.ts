/** Follows a stream over cut connections and restarts of the server: nothing missing, nothing twice. */

import { ConnectionError, UnexpectedAnswerError } from "./errors.js";
import { backoff, mayRepeat } from "./retry.js";
import { EventParser, type ServerSentEvent } from "./sse.js";
import { Deadline, sleep } from "./timing.js";
import { attemptOf, type Transport } from "./transport.js";

/** One thing that happened. Each kind has fields of its own. */
export interface Frame {
  /** The place in the stream: give it as `lastEventId` to go on after it. */
  readonly id: string;
  readonly kind: string;
  readonly event_id: string | null;
  readonly zombie_id: string | null;
  /** Unix ms, by the clock of the one who saw it. Only `id` orders a stream. */
  readonly at_ms: number;
  readonly [field: string]: unknown;
}

export interface StreamOptions {
  /** Ends the stream: it rejects with the signal's reason. */
  signal?: AbortSignal;
  /** Begin after this frame; without it the stream begins with what happens next. */
  lastEventId?: string;
  /** How long the server may be away before the stream gives up, in ms. */
  giveUpAfterMs?: number;
  /** How long a connection may be silent, in ms; a server says something each 15 s. */
  silenceMs?: number;
  /** Called before each attempt to come back. */
  onReconnect?: (error: Error | undefined) => void;
}

const GIVE_UP_MS = 10 * 60_000;
const SILENCE_MS = 45_000;
const SHORTEST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 10_000;

export async function* follow(
  transport: Transport,
  path: string,
  options: StreamOptions,
): AsyncGenerator<Frame, void, undefined> {
  const { signal, giveUpAfterMs = GIVE_UP_MS, silenceMs = SILENCE_MS } = options;
  const place = { id: options.lastEventId };
  let failures = 0;
  let heardAt = Date.now();
  for (;;) {
    let ended: Error | undefined;
    let pause = 0;
    const deadline = new Deadline(signal);
    try {
      for await (const event of connect(transport, path, place.id, deadline, silenceMs)) {
        [failures, heardAt] = [0, Date.now()];
        if (typeof event === "number") pause = event;
        else {
          const frame = toFrame(event, place);
          if (frame !== undefined) yield frame;
        }
      }
    } catch (error) {
      if (signal?.aborted) throw signal.reason;
      if (!(error instanceof Error) || !mayRepeat("repeatable", attemptOf(error))) throw error;
      if (Date.now() - heardAt > giveUpAfterMs) throw error;
      ended = error;
      const own = backoff(++failures, { ...transport.retry, longestPauseMs: LONGEST_PAUSE_MS }, Math.random());
      pause = Math.max(pause, own, attemptOf(error).retryAfterMs ?? 0);
    } finally {
      deadline.close();
    }
    await sleep(Math.max(pause, SHORTEST_PAUSE_MS), signal);
    options.onReconnect?.(ended);
  }
}

/** One connection's events, and in between, as numbers, what the server says of when to come back. */
async function* connect(
  transport: Transport,
  path: string,
  lastId: string | undefined,
  deadline: Deadline,
  silenceMs: number,
): AsyncGenerator<ServerSentEvent | number, void, undefined> {
  const headers = { accept: "text/event-stream", ...(lastId === undefined ? {} : { "last-event-id": lastId }) };
  deadline.set(silenceMs);
  const response = await transport.open({ method: "GET", path, safety: "repeatable", headers }, deadline);
  const type = response.headers.get("content-type") ?? "";
  if (response.body === null || !/^text\/event-stream\b/i.test(type)) {
    throw new UnexpectedAnswerError(`${type || "nothing"} came instead of a stream of events`, response.status);
  }
  const parser = new EventParser();
  const decoder = new TextDecoder();
  const reader = response.body.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read().catch((cause: unknown) => {
        throw new ConnectionError("the stream broke off", { cause });
      });
      if (done) return;
      deadline.set(silenceMs);
      const events = parser.push(decoder.decode(value, { stream: true }));
      if (parser.retryMs !== undefined) yield parser.retryMs;
      yield* events;
    }
  } finally {
    reader.cancel().catch(() => undefined);
  }
}

/** Moves the place on. Undefined for what is no frame, or was seen already. */
function toFrame(event: ServerSentEvent, place: { id: string | undefined }): Frame | undefined {
  const { id = place.id ?? "", kind, data } = event;
  // An id alone says where the stream begins or has come to, and that holds.
  const isRepeat = data !== null && kind !== "resync" && !isAfter(id, place.id);
  if (id !== "" && !isRepeat) place.id = id;
  if (data === null || isRepeat) return undefined;
  let fields: unknown;
  try {
    fields = JSON.parse(data);
  } catch {
    throw new UnexpectedAnswerError("a frame of the stream is not JSON", 200, data.slice(0, 200));
  }
  return { kind, ...(fields as object), id } as Frame;
}

/** Numbers grow; other places are only compared with the one before. */
function isAfter(id: string, last: string | undefined): boolean {
  if (last === undefined || id === "") return true;
  if (!/^\d+$/.test(id) || !/^\d+$/.test(last)) return id !== last;
  return id.length === last.length ? id > last : id.length > last.length;
}
