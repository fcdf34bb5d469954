/** Takes the bytes of server-sent events apart, as the HTML standard says. */

import { UnexpectedAnswerError } from "./errors.js";

const MOST_CHARS = 4 * 1024 * 1024;

export interface ServerSentEvent {
  /** The id that holds from this event on; undefined until one was named. */
  readonly id: string | undefined;
  readonly kind: string;
  /** Null: there was only an id, which says where the stream begins or has come to. */
  readonly data: string | null;
}

/** One connection's events. What the end of the connection cuts off is never an event. */
export class EventParser {
  /** What the server last said of when to come back, in ms. */
  retryMs: number | undefined;
  #rest = "";
  #id: string | undefined;
  #named = false;
  #kind = "";
  #data: string[] = [];
  #chars = 0;
  #first = true;

  /** The events that this piece completes. Raises UnexpectedAnswerError for one that is too long. */
  push(piece: string): ServerSentEvent[] {
    let text = this.#rest + piece;
    if (this.#first && text !== "") {
      this.#first = false;
      if (text.startsWith("\uFEFF")) text = text.slice(1);
    }
    // A carriage return at the end may be half of a line's end.
    const end = text.endsWith("\r") ? text.length - 1 : text.length;
    const events: ServerSentEvent[] = [];
    const lines = /\r\n|\n|\r/g;
    let at = 0;
    for (let found = lines.exec(text); found !== null && found.index < end; found = lines.exec(text)) {
      const event = this.#line(text.slice(at, found.index));
      if (event !== undefined) events.push(event);
      at = lines.lastIndex;
    }
    this.#rest = text.slice(at);
    if (this.#rest.length + this.#chars > MOST_CHARS) {
      throw new UnexpectedAnswerError(`an event of the stream is longer than ${MOST_CHARS} characters`, 200);
    }
    return events;
  }

  #line(line: string): ServerSentEvent | undefined {
    if (line === "") return this.#dispatch();
    const colon = line.indexOf(":");
    if (colon === 0) return undefined;
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + (line[colon + 1] === " " ? 2 : 1));
    if (field === "data") {
      this.#data.push(value);
      this.#chars += value.length;
    } else if (field === "event") this.#kind = value;
    else if (field === "id" && !value.includes("\0")) {
      this.#id = value;
      this.#named = true;
    } else if (field === "retry" && /^\d{1,9}$/.test(value)) this.retryMs = Number(value);
    return undefined;
  }

  #dispatch(): ServerSentEvent | undefined {
    const data = this.#data.length === 0 ? null : this.#data.join("\n");
    const event = { id: this.#id, kind: this.#kind || "message", data };
    const isSomething = data !== null || this.#named;
    [this.#data, this.#kind, this.#chars, this.#named] = [[], "", 0, false];
    return isSomething ? event : undefined;
  }
}
