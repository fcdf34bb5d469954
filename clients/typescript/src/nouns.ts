/** The common calls by noun and verb, as the command line has them. Each is one operation of the interface. */

import type { Calls } from "./calls.js";
import type { Frame, StreamOptions } from "./stream.js";
import type { CallOptions } from "./transport.js";
import type { Answer, BodyOf, Query } from "./types.js";
import { untilEnded, type WaitOptions } from "./wait.js";

export const agents = (client: Calls) => ({
  list: (query: Query<"list_zombies"> = {}, options?: CallOptions) => client.list("list_zombies", query, options),
  get: (zombie_id: string, options?: CallOptions) => client.call("get_zombie", { zombie_id }, options),
  install: (files: BodyOf<"install_zombie">, options?: CallOptions) =>
    client.call("install_zombie", { body: files }, options),
  change: (zombie_id: string, body: BodyOf<"change_zombie">, options?: CallOptions) =>
    client.call("change_zombie", { zombie_id, body }, options),
  remove: (zombie_id: string, options?: CallOptions) => client.call("delete_zombie", { zombie_id }, options),
  /** Wake it with a message; the answer names the event that this makes. */
  send: (zombie_id: string, message: string, options?: CallOptions) =>
    client.call("steer_zombie", { zombie_id, body: { message } }, options),
  events: (zombie_id: string, query: Query<"list_zombie_events"> = {}, options?: CallOptions) =>
    client.list("list_zombie_events", { zombie_id, ...query }, options),
  stream: (zombie_id: string, options?: StreamOptions & { since?: string }): AsyncGenerator<Frame, void, undefined> =>
    client.stream("stream_events", { zombie_id, ...since(options?.since) }, options),
});

export const events = (client: Calls) => ({
  list: (query: Query<"list_workspace_events"> = {}, options?: CallOptions) =>
    client.list("list_workspace_events", query, options),
  get: (event_id: string, options?: CallOptions) => client.call("get_workspace_event", { event_id }, options),
  /** The event once it has ended. Rejects with WaitTimeoutError when it has not by then. */
  wait: (event_id: string, options?: WaitOptions): Promise<Answer<"get_workspace_event">> =>
    untilEnded((wait_ms, each) => client.call("get_workspace_event", { event_id, wait_ms }, each), event_id, options),
  /** What keeps it from running, and what to do about it. */
  why: (event_id: string, options?: CallOptions) => client.call("explain_workspace_event", { event_id }, options),
  /** Its spans, and what each of them has cost. */
  trace: (event_id: string, options?: CallOptions) => client.call("get_event_trace", { event_id }, options),
  transcript: (event_id: string, query: Query<"get_workspace_transcript"> = {}, options?: CallOptions) =>
    client.list("get_workspace_transcript", { event_id, ...query }, options),
  replay: (event_id: string, body: BodyOf<"replay_workspace_event"> = {}, options?: CallOptions) =>
    client.call("replay_workspace_event", { event_id, body }, options),
  cancel: (event_id: string, options?: CallOptions) => client.call("cancel_workspace_event", { event_id }, options),
  replayMany: (body: BodyOf<"replay_events">, options?: CallOptions) =>
    client.call("replay_events", { body }, options),
  cancelMany: (body: BodyOf<"cancel_events">, options?: CallOptions) =>
    client.call("cancel_events", { body }, options),
  stream: (options?: StreamOptions & { q?: string }): AsyncGenerator<Frame, void, undefined> =>
    client.stream("stream_workspace_events", options?.q === undefined ? {} : { q: options.q }, options),
});

export const approvals = (client: Calls) => ({
  list: (query: Query<"list_approvals"> = {}, options?: CallOptions) => client.list("list_approvals", query, options),
  get: (gate_id: string, options?: CallOptions) => client.call("get_approval", { gate_id }, options),
  approve: (gate_id: string, body: BodyOf<"approve"> = {}, options?: CallOptions) =>
    client.call("approve", { gate_id, body }, options),
  deny: (gate_id: string, body: BodyOf<"deny"> = {}, options?: CallOptions) =>
    client.call("deny", { gate_id, body }, options),
});

export const jobs = (client: Calls) => ({
  list: (query: Query<"list_jobs"> = {}, options?: CallOptions) => client.list("list_jobs", query, options),
  get: (job_id: string, options?: CallOptions) => client.call("get_job", { job_id }, options),
  pause: (job_id: string, options?: CallOptions) => client.call("pause_job", { job_id }, options),
  resume: (job_id: string, options?: CallOptions) => client.call("resume_job", { job_id }, options),
  stop: (job_id: string, options?: CallOptions) => client.call("stop_job", { job_id }, options),
});

export const failures = (client: Calls) => ({
  list: (query: Query<"list_failures"> = {}, options?: CallOptions) => client.list("list_failures", query, options),
  get: (failure_id: string, options?: CallOptions) => client.call("get_failure", { failure_id }, options),
  acknowledge: (failure_id: string, options?: CallOptions) =>
    client.call("acknowledge_failure", { failure_id }, options),
  mute: (failure_id: string, body: BodyOf<"mute_failure">, options?: CallOptions) =>
    client.call("mute_failure", { failure_id, body }, options),
  replay: (failure_id: string, body: BodyOf<"replay_failure"> = {}, options?: CallOptions) =>
    client.call("replay_failure", { failure_id, body }, options),
});

export const credentials = (client: Calls) => ({
  list: (query: Query<"list_credentials"> = {}, options?: CallOptions) =>
    client.list("list_credentials", query, options),
  put: (body: BodyOf<"put_credential">, options?: CallOptions) => client.call("put_credential", { body }, options),
  remove: (name: string, options?: CallOptions) => client.call("delete_credential", { name }, options),
});

export const schedules = (client: Calls) => ({
  list: (query: Query<"list_schedules"> = {}, options?: CallOptions) => client.list("list_schedules", query, options),
  get: (zombie_id: string, schedule_id: string, options?: CallOptions) =>
    client.call("get_schedule", { zombie_id, schedule_id }, options),
  pause: (zombie_id: string, schedule_id: string, options?: CallOptions) =>
    client.call("pause_schedule", { zombie_id, schedule_id }, options),
  resume: (zombie_id: string, schedule_id: string, options?: CallOptions) =>
    client.call("resume_schedule", { zombie_id, schedule_id }, options),
  run: (zombie_id: string, schedule_id: string, options?: CallOptions) =>
    client.call("run_schedule", { zombie_id, schedule_id }, options),
});

export const webhooks = (client: Calls) => ({
  list: (query: Query<"list_webhooks"> = {}, options?: CallOptions) => client.list("list_webhooks", query, options),
  deliveries: (query: Query<"list_deliveries"> = {}, options?: CallOptions) =>
    client.list("list_deliveries", query, options),
  delivery: (delivery_id: string, options?: CallOptions) => client.call("get_delivery", { delivery_id }, options),
  replay: (delivery_id: string, options?: CallOptions) => client.call("replay_delivery", { delivery_id }, options),
  /** Say what would become of a delivery, without taking it. */
  verify: (zombie_id: string, body: BodyOf<"verify_webhook">, options?: CallOptions) =>
    client.call("verify_webhook", { zombie_id, body }, options),
});

export const workspaces = (client: Calls) => ({
  list: (options?: CallOptions) => client.list("list_workspaces", {}, options),
  get: (workspace_id: string, options?: CallOptions) => client.call("get_workspace", { workspace_id }, options),
  create: (body: BodyOf<"create_workspace">, options?: CallOptions) =>
    client.call("create_workspace", { body }, options),
  change: (workspace_id: string, body: BodyOf<"change_workspace">, options?: CallOptions) =>
    client.call("change_workspace", { workspace_id, body }, options),
});

export const keys = (client: Calls) => ({
  list: (query: Query<"list_api_keys"> = {}, options?: CallOptions) => client.list("list_api_keys", query, options),
  create: (body: BodyOf<"create_api_key">, options?: CallOptions) => client.call("create_api_key", { body }, options),
  change: (key_id: string, body: BodyOf<"change_api_key">, options?: CallOptions) =>
    client.call("change_api_key", { key_id, body }, options),
  remove: (key_id: string, options?: CallOptions) => client.call("delete_api_key", { key_id }, options),
});

export const members = (client: Calls) => ({
  list: (query: Query<"list_members"> = {}, options?: CallOptions) => client.list("list_members", query, options),
  create: (body: BodyOf<"create_member">, options?: CallOptions) => client.call("create_member", { body }, options),
  change: (member_id: string, body: BodyOf<"change_member">, options?: CallOptions) =>
    client.call("change_member", { member_id, body }, options),
  remove: (member_id: string, options?: CallOptions) => client.call("remove_member", { member_id }, options),
});

export const runners = (client: Calls) => ({
  list: (query: Query<"list_runners"> = {}, options?: CallOptions) => client.list("list_runners", query, options),
  change: (runner_id: string, body: BodyOf<"change_runner">, options?: CallOptions) =>
    client.call("change_runner", { runner_id, body }, options),
  enrolmentToken: (body: BodyOf<"mint_enrolment_token"> = {}, options?: CallOptions) =>
    client.call("mint_enrolment_token", { body }, options),
});

export const files = (client: Calls) => ({
  list: (event_id: string, options?: CallOptions) => client.list("list_artefacts", { event_id }, options),
  get: (artefact_id: string, options?: CallOptions) => client.call("get_artefact", { artefact_id }, options),
  /** Its content, to be read as the caller likes. */
  read: (artefact_id: string, options?: CallOptions) => client.raw("read_artefact", { artefact_id }, options),
  remove: (artefact_id: string, options?: CallOptions) => client.call("delete_artefact", { artefact_id }, options),
});

export const billing = (client: Calls) => ({
  balance: (options?: CallOptions) => client.call("get_balance", {}, options),
  charges: (query: Query<"list_charges"> = {}, options?: CallOptions) => client.list("list_charges", query, options),
});

function since(value: string | undefined): { since?: string } {
  return value === undefined ? {} : { since: value };
}
