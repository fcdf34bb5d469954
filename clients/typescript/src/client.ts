/** The client: every operation by its name, and the common ones by noun and verb. */

import { Calls } from "./calls.js";
import * as nouns from "./nouns.js";
import type { CallOptions, ClientSettings } from "./transport.js";
import type { Answer } from "./types.js";

export class Sexton extends Calls {
  readonly agents = nouns.agents(this);
  readonly approvals = nouns.approvals(this);
  readonly billing = nouns.billing(this);
  readonly credentials = nouns.credentials(this);
  readonly events = nouns.events(this);
  readonly failures = nouns.failures(this);
  readonly files = nouns.files(this);
  readonly jobs = nouns.jobs(this);
  readonly keys = nouns.keys(this);
  readonly members = nouns.members(this);
  readonly runners = nouns.runners(this);
  readonly schedules = nouns.schedules(this);
  readonly webhooks = nouns.webhooks(this);
  readonly workspaces = nouns.workspaces(this);
  readonly #settings: ClientSettings;

  constructor(settings: ClientSettings) {
    super(settings);
    this.#settings = { ...settings };
  }

  /** The same client, about another workspace. */
  inWorkspace(workspaceId: string): Sexton {
    return new Sexton({ ...this.#settings, workspaceId });
  }

  whoami(options?: CallOptions): Promise<Answer<"whoami">> {
    return this.call("whoami", {}, options);
  }
}
