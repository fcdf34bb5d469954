/** Reads the bodies of answers, of which nobody knows who wrote them, within bounds. */

import { ConnectionError, UnexpectedAnswerError, type Problem } from "./errors.js";

const EXCERPT_CHARS = 200;
const PROBLEM_BYTES = 256 * 1024;
const JSON_TYPE = /^application\/(?:[\w.+-]+\+)?json\b/i;

/** All of it as text. Raises UnexpectedAnswerError beyond `most` bytes, ConnectionError when it breaks off. */
async function readText(response: Response, most: number): Promise<string> {
  if (response.body === null) return "";
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  let text = "";
  let bytes = 0;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return text + decoder.decode();
      bytes += value.byteLength;
      if (bytes > most) throw new UnexpectedAnswerError(`the answer is longer than ${most} bytes`, response.status);
      text += decoder.decode(value, { stream: true });
    }
  } catch (error) {
    throw error instanceof UnexpectedAnswerError ? error : new ConnectionError("the answer broke off", { cause: error });
  } finally {
    reader.cancel().catch(() => undefined);
  }
}

export async function readJson(response: Response, most: number): Promise<unknown> {
  if (response.status === 204) return undefined;
  const text = await readText(response, most);
  const type = response.headers.get("content-type") ?? "";
  if (!JSON_TYPE.test(type)) throw unexpected(response.status, type, text);
  try {
    return JSON.parse(text);
  } catch {
    throw unexpected(response.status, type, text);
  }
}

/** The problem document of a refusal; undefined where something else refused: a proxy, another service. */
export async function readProblem(response: Response): Promise<{ problem: Problem | undefined; text: string }> {
  const text = await readText(response, PROBLEM_BYTES).catch(() => "");
  if (!JSON_TYPE.test(response.headers.get("content-type") ?? "")) return { problem: undefined, text };
  try {
    const found: unknown = JSON.parse(text);
    return { problem: isProblem(found) ? found : undefined, text };
  } catch {
    return { problem: undefined, text };
  }
}

export function unexpected(status: number, type: string, text: string): UnexpectedAnswerError {
  const excerpt = text.slice(0, EXCERPT_CHARS).replace(/\s+/g, " ");
  const what = type === "" ? "an answer without a type" : type.slice(0, 80);
  return new UnexpectedAnswerError(
    `${what} with status ${status} is not Sexton's answer: look at what stands between here and the server: ${excerpt}`,
    status,
    excerpt,
  );
}

function isProblem(value: unknown): value is Problem {
  return typeof value === "object" && value !== null && typeof (value as Problem).error_code === "string";
}
