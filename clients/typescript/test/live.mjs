/** Sends messages to an agent and follows it, whatever becomes of the server meanwhile; prints what it saw. */

import { Sexton } from "@sexton/client";

const [baseUrl, token, workspaceId, skill, trigger] = process.argv.slice(2);
const sexton = new Sexton({ baseUrl, token, workspaceId, retry: { attempts: 60, longestPauseMs: 500 } });

const agent = await sexton.agents.install({ source_markdown: skill, trigger_markdown: trigger });
const frames = [];
const reconnects = [];
const stopped = new AbortController();
const following = (async () => {
  const onReconnect = (error) => reconnects.push(error?.name ?? "ended");
  for await (const frame of sexton.agents.stream(agent.zombie_id, { lastEventId: "0", onReconnect, signal: stopped.signal })) {
    frames.push([frame.id, frame.kind, frame.event_id]);
    if (frames.filter(([, kind]) => kind === "event_complete").length === 3) break;
  }
})();

const events = [];
for (const message of ["one", "two", "three"]) {
  const { event_id } = await sexton.agents.send(agent.zombie_id, message);
  const event = await sexton.events.wait(event_id, { timeoutMs: 90_000 });
  events.push([event_id, event.status, event.response_text]);
  console.log(message);
}
const late = setTimeout(() => stopped.abort(new Error("the stream did not come to its end")), 60_000);
await following;
clearTimeout(late);

const listed = [];
for await (const event of sexton.agents.events(agent.zombie_id, { limit: 1 })) listed.push(event.event_id);
console.log(JSON.stringify({ events, frames, listed, reconnects }));
