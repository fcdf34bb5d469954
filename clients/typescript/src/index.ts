/** What programs import. */

export type { StreamName } from "./calls.js";
export { Sexton } from "./client.js";
export { CODES, type ErrorCode } from "./codes.js";
export {
  ConflictError,
  ConnectionError,
  ForbiddenError,
  GoneError,
  InvalidRequestError,
  isRefusal,
  NotFoundError,
  PaymentRequiredError,
  RefusedError,
  SextonError,
  TooManyRequestsError,
  UnauthorizedError,
  UnavailableError,
  UnexpectedAnswerError,
  WaitTimeoutError,
  type Problem,
} from "./errors.js";
export type { Listing } from "./paging.js";
export type { RetryPolicy } from "./retry.js";
export type { Frame, StreamOptions } from "./stream.js";
export type { CallOptions, ClientSettings } from "./transport.js";
export type { Answer, BodyOf, Input, Item, ListName, OperationName, Query, Schemas } from "./types.js";
export { VERSION } from "./version.js";
export type { WaitOptions } from "./wait.js";
