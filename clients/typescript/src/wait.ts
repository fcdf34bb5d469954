/** Waits for the end of an event by long polls. */

import { WaitTimeoutError } from "./errors.js";
import { sleep } from "./timing.js";
import type { CallOptions } from "./transport.js";

export interface WaitOptions {
  signal?: AbortSignal;
  /** How long to wait in all, in ms; for ever where it is left out. */
  timeoutMs?: number;
}

const LONGEST_POLL_MS = 30_000;
/** What an answer may take beside the wait. */
const SLACK_MS = 15_000;
/** A server that answers at once although nothing has ended is not asked more often than this. */
const SHORTEST_ROUND_MS = 500;

export async function untilEnded<T extends { ended: boolean }>(
  poll: (waitMs: number, options: CallOptions) => Promise<T>,
  what: string,
  { signal, timeoutMs = Infinity }: WaitOptions = {},
): Promise<T> {
  const began = Date.now();
  for (;;) {
    const asked = Date.now();
    const left = began + timeoutMs - asked;
    const waitMs = Math.max(0, Math.min(LONGEST_POLL_MS, Math.round(left)));
    const found = await poll(waitMs, { timeoutMs: waitMs + SLACK_MS, ...(signal === undefined ? {} : { signal }) });
    if (found.ended) return found;
    const now = Date.now();
    if (now - began >= timeoutMs) throw new WaitTimeoutError(`${what} has not ended within ${timeoutMs} ms`);
    const rest = Math.min(asked + SHORTEST_ROUND_MS, began + timeoutMs) - now;
    if (rest > 0) await sleep(rest, signal);
  }
}
