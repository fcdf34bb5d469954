/** Goes through lists page by page, by cursor or by number. */

import { UnexpectedAnswerError } from "./errors.js";

/** The fields of a page that say where the next one begins. */
interface Page {
  readonly items: readonly unknown[];
  readonly next_cursor?: string | null;
  readonly total?: number;
  readonly page?: number;
  readonly page_size?: number;
}

type Fetch<P> = (input: Record<string, unknown>) => Promise<P>;

/** A list that is fetched as it is read: `for await (const event of client.events.list())`. */
export class Listing<P, T> implements AsyncIterable<T> {
  readonly #fetch: Fetch<P>;
  readonly #input: Readonly<Record<string, unknown>>;

  constructor(fetch: Fetch<P>, input: Readonly<Record<string, unknown>>) {
    this.#fetch = fetch;
    this.#input = input;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T, void, undefined> {
    for await (const page of this.pages()) yield* (page as Page).items as readonly T[];
  }

  /** The pages as the server gives them; one may be empty and have others after it. */
  async *pages(): AsyncGenerator<P, void, undefined> {
    let input: Record<string, unknown> | undefined = { ...this.#input };
    while (input !== undefined) {
      const page = await this.#fetch(input);
      if (!Array.isArray((page as Page | undefined)?.items)) throw new UnexpectedAnswerError("a page of a list came without items", 200);
      yield page;
      input = nextInput(input, page as Page);
    }
  }

  /** The first `most` of it. */
  async take(most: number): Promise<T[]> {
    const taken: T[] = [];
    if (most < 1) return taken;
    for await (const item of this) {
      taken.push(item);
      if (taken.length >= most) break;
    }
    return taken;
  }
}

/** What to ask next; undefined after the last page. */
export function nextInput(asked: Readonly<Record<string, unknown>>, page: Page): Record<string, unknown> | undefined {
  if (typeof page.next_cursor === "string") {
    if (page.next_cursor === asked["cursor"]) {
      throw new UnexpectedAnswerError("the list does not go on: its cursor came twice", 200);
    }
    // A cursor carries on what `since` began.
    const { since: _, ...same } = asked;
    return { ...same, cursor: page.next_cursor };
  }
  const { total, page: number, page_size: size } = page;
  if (total === undefined || number === undefined || size === undefined) return undefined;
  return page.items.length > 0 && number * size < total ? { ...asked, page: number + 1 } : undefined;
}
