/** Waits, and signals that end what takes too long. */

import { ConnectionError } from "./errors.js";

/** Resolves after `ms`. Rejects with the signal's reason when that comes first. */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const end = (): void => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", end);
      resolve();
    }, ms);
    signal?.addEventListener("abort", end, { once: true });
  });
}

/** A signal that follows the caller's, and that gives up when nothing has happened for a while. */
export class Deadline {
  readonly #controller = new AbortController();
  readonly #caller: AbortSignal | undefined;
  readonly #follow = (): void => this.#controller.abort(this.#caller?.reason);
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(caller?: AbortSignal) {
    this.#caller = caller;
    if (caller?.aborted) this.#follow();
    else caller?.addEventListener("abort", this.#follow, { once: true });
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Begin to count again. */
  set(ms: number): void {
    clearTimeout(this.#timer);
    const over = new ConnectionError(`nothing came for ${Math.round(ms / 100) / 10} s`);
    this.#timer = setTimeout(() => this.#controller.abort(over), ms);
  }

  /** Count no longer; the caller's signal still ends what goes on. */
  release(): void {
    clearTimeout(this.#timer);
  }

  /** End what goes on, and leave no timer or listener behind. */
  close(): void {
    clearTimeout(this.#timer);
    this.#caller?.removeEventListener("abort", this.#follow);
    this.#controller.abort(new ConnectionError("closed"));
  }
}
