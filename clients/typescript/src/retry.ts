/** Decides whether a call is sent again, and when. Nothing here waits, or reads a clock. */

/** What sending a request twice would do. */
export type Safety =
  /** Nothing: it only reads, or says how something is to be. */
  | "repeatable"
  /** Nothing, since it has an Idempotency-Key. */
  | "keyed"
  /** Something: only what never reached the work is sent again. */
  | "once";

/** What became of one attempt. `status` 0: no answer came. `code` is empty where no problem document came. */
export interface Attempt {
  readonly status: number;
  readonly code: string;
  readonly retryAfterMs: number | undefined;
}

export interface RetryPolicy {
  /** Attempts in all; 1 sends nothing again. */
  readonly attempts: number;
  /** The first pause where the server names none, in ms; it doubles. */
  readonly firstPauseMs: number;
  /** The longest pause, in ms. Where the server asks for more, the refusal is thrown at once. */
  readonly longestPauseMs: number;
}

export const RETRY: RetryPolicy = { attempts: 5, firstPauseMs: 250, longestPauseMs: 60_000 };

/** Refused at the door: the work has not begun. */
const AT_THE_DOOR: ReadonlySet<string> = new Set(["UZ-REQ-006", "UZ-API-001", "UZ-API-002", "UZ-API-004", "UZ-API-005"]);
const STILL_RUNNING = "UZ-REQ-007";
const PASSING: ReadonlySet<number> = new Set([0, 502, 503, 504]);

export function mayRepeat(safety: Safety, { status, code }: Attempt): boolean {
  if (AT_THE_DOOR.has(code) || (status === 429 && code === "")) return true;
  if (safety === "once") return false;
  return PASSING.has(status) || (safety === "keyed" && code === STILL_RUNNING);
}

/**
 * How long to wait before the next attempt, in ms; undefined: do not try again.
 *
 * @param made attempts so far, from 1 on
 * @param chance a number from 0 to 1
 */
export function pauseBefore(
  made: number,
  safety: Safety,
  attempt: Attempt,
  policy: RetryPolicy,
  chance: number,
): number | undefined {
  if (made >= policy.attempts || !mayRepeat(safety, attempt)) return undefined;
  if (attempt.retryAfterMs !== undefined) {
    // Never earlier than asked; the jitter keeps callers apart who were turned away together.
    return attempt.retryAfterMs > policy.longestPauseMs ? undefined : attempt.retryAfterMs * (1 + chance / 10);
  }
  return backoff(made, policy, chance);
}

/** Doubles with each failure, up to the longest; half of it is by chance. */
export function backoff(failures: number, policy: RetryPolicy, chance: number): number {
  const whole = Math.min(policy.longestPauseMs, policy.firstPauseMs * 2 ** Math.min(failures - 1, 30));
  return whole * (0.5 + chance / 2);
}

/**
 * `Retry-After` in ms: seconds, or a date. A date is compared with the answer's own `Date`, so that it does
 * not matter what this machine's clock says. Undefined where it is neither.
 */
export function readRetryAfter(value: string | null, date: string | null, nowMs: number): number | undefined {
  if (value === null) return undefined;
  const text = value.trim();
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1000;
  const until = /[a-z]/i.test(text) ? Date.parse(text) : NaN;
  if (Number.isNaN(until)) return undefined;
  const theirs = date === null ? NaN : Date.parse(date);
  return Math.max(0, until - (Number.isNaN(theirs) ? nowMs : theirs));
}
