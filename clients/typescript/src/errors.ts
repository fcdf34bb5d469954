/** What can go wrong with a call, as classes that can be told apart. */

import { CODES, type ErrorCode } from "./codes.js";
import type { components } from "./openapi.js";

/** The body of a refusal (RFC 9457). Conflicts add their facts as members, such as `current_state`. */
export type Problem = components["schemas"]["Problem"] & { [member: string]: unknown };

/** The base of all that this library throws, but for a `TypeError` when a call is written wrongly. */
export class SextonError extends Error {
  override readonly name: string = "SextonError";
}

/** The server refused. Each status has a class of its own; `code` says exactly what it was. */
export class RefusedError extends SextonError {
  override readonly name: string = "RefusedError";
  readonly code: ErrorCode | (string & {});
  readonly status: number;
  readonly title: string;
  readonly detail: string;
  /** Names the request in the server's log. */
  readonly requestId: string;
  /** How long the server asked to wait, in ms; undefined where it did not say. */
  readonly retryAfterMs: number | undefined;
  readonly problem: Problem;

  constructor(status: number, problem: Problem, retryAfterMs?: number) {
    super(`${problem.error_code}: ${problem.detail || problem.title} (${status}, request ${problem.request_id})`);
    this.code = problem.error_code;
    this.status = status;
    this.title = problem.title;
    this.detail = problem.detail;
    this.requestId = problem.request_id;
    this.retryAfterMs = retryAfterMs;
    this.problem = problem;
  }

  /** What the code means, in one sentence; empty for a code that is newer than this library. */
  get means(): string {
    return Object.hasOwn(CODES, this.code) ? CODES[this.code as ErrorCode] : "";
  }
}

/** 400, 413, 415, 416, 422: the request itself is wrong. Sending it again does not help. */
export class InvalidRequestError extends RefusedError {
  override readonly name = "InvalidRequestError";
}
/** 401: the token is missing, unknown, expired or revoked. */
export class UnauthorizedError extends RefusedError {
  override readonly name = "UnauthorizedError";
}
/** 402: balance, budget or plan do not allow it now. */
export class PaymentRequiredError extends RefusedError {
  override readonly name = "PaymentRequiredError";
}
/** 403: the token is good but does not allow this. */
export class ForbiddenError extends RefusedError {
  override readonly name = "ForbiddenError";
}
/** 404: there is nothing of this id, or it is not the caller's to see. */
export class NotFoundError extends RefusedError {
  override readonly name = "NotFoundError";
}
/** 409: the current state does not allow it. */
export class ConflictError extends RefusedError {
  override readonly name = "ConflictError";
}
/** 410: it was there once and will not come back. */
export class GoneError extends RefusedError {
  override readonly name = "GoneError";
}
/** 429: too many requests; `retryAfterMs` says when the next one is welcome. */
export class TooManyRequestsError extends RefusedError {
  override readonly name = "TooManyRequestsError";
}
/** 500 and above: the server, or something that it needs, failed. */
export class UnavailableError extends RefusedError {
  override readonly name = "UnavailableError";
}

/** No answer came: the server is away, the connection broke, the time was over. `cause` says more. */
export class ConnectionError extends SextonError {
  override readonly name = "ConnectionError";
}

/** Something answered that is not Sexton's interface: a proxy's error page, a redirect, half a document. */
export class UnexpectedAnswerError extends SextonError {
  override readonly name = "UnexpectedAnswerError";
  readonly status: number;
  /** The beginning of what came. */
  readonly excerpt: string;

  constructor(message: string, status: number, excerpt = "") {
    super(message);
    this.status = status;
    this.excerpt = excerpt;
  }
}

/** What was waited for had not happened when the time was over. */
export class WaitTimeoutError extends SextonError {
  override readonly name = "WaitTimeoutError";
}

/** Whether the server refused with one of these codes: `isRefusal(error, "UZ-EVENT-001")`. */
export function isRefusal(error: unknown, ...codes: ErrorCode[]): error is RefusedError {
  return error instanceof RefusedError && (codes.length === 0 || codes.some((code) => code === error.code));
}

const BY_STATUS: Readonly<Record<number, typeof RefusedError>> = {
  401: UnauthorizedError,
  402: PaymentRequiredError,
  403: ForbiddenError,
  404: NotFoundError,
  409: ConflictError,
  410: GoneError,
  429: TooManyRequestsError,
};

export function refusal(status: number, problem: Problem, retryAfterMs?: number): RefusedError {
  const kind = BY_STATUS[status] ?? (status >= 500 ? UnavailableError : InvalidRequestError);
  return new kind(status, problem, retryAfterMs);
}
