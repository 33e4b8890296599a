// Whether this engine confines analysts of orgs: makes what they read, then tries to get past it, as the user they are asked for with. No
// analyst is made, and none is answered, before every attempt has failed.
import { isAllowedFunction, isAllowedTableFunction } from './functions.ts';
import { escapeAttempts, HARMLESS_QUERY, HIDDEN_CALLS, LIST_FUNCTIONS } from '../../../sql/analysts/escape_attempts.ts';
import { StoreUnavailable } from '../../../sql/client/client.ts';
import type { AnalystEngine, EngineText } from './engine.ts';
import { checkQuery } from './parse.ts';

/** After a failure it is not tried again before; what held is tried again after a while, as grants and policies of a server can be changed. */
const AGAIN_MS = 5000;
const HOLDS_MS = 600_000;
const TRY_MS_MAX = 20_000;
const USER = 'selftest';

export interface ConfinementDeps {
  engine: AnalystEngine;
  /** The service's own database. */
  database: string;
  /** Makes users, policies and views; says why it may not. @throws Error when the engine is away */
  prepare: () => Promise<string | null>;
  /** Monotonic milliseconds. */
  now: () => number;
  /** Told of a way past the confinement. */
  onEscape: (what: string) => void;
}

/** What is known once the engine is found to confine them. */
export interface Confined {
  /** Every function that the engine has, in lower case. */
  functions: ReadonlySet<string>;
}

export class Confinement {
  readonly #deps: ConfinementDeps;
  #confined: { known: Confined; at: number } | null = null;
  #trying: Promise<Confined | string> | null = null;
  #failed: { reason: string; at: number } | null = null;

  constructor(deps: ConfinementDeps) {
    this.#deps = deps;
  }

  /** What is known, or the reason why analysts cannot be confined. @throws Error when the engine is away */
  async ensure(): Promise<Confined | string> {
    const now = this.#deps.now();
    if (this.#confined !== null && now - this.#confined.at < HOLDS_MS) return this.#confined.known;
    if (this.#failed !== null && now - this.#failed.at < AGAIN_MS) return this.#failed.reason;
    this.#trying ??= this.#try().finally(() => {
      this.#trying = null;
    });
    const found = await this.#trying;
    if (typeof found === 'string') {
      this.#failed = { reason: found, at: now };
      this.#confined = null;
    } else this.#confined = { known: found, at: now };
    return found;
  }

  async #try(): Promise<Confined | string> {
    const refused = this.#confined === null ? await this.#deps.prepare() : null;
    if (refused !== null) return `the engine does not let the service make their user: ${refused}`;
    try {
      return await tryToEscape(this.#deps.engine, this.#deps.database, this.#deps.onEscape);
    } catch (cause) {
      throw new StoreUnavailable('the engine did not answer while it was tried whether it confines analysts', {
        cause,
      });
    }
  }
}

/** @param found told what a way out was, with the statement that found it: for the log, not for who asks */
async function tryToEscape(
  engine: AnalystEngine,
  database: string,
  found: (what: string) => void,
): Promise<Confined | string> {
  const signal = AbortSignal.timeout(TRY_MS_MAX);
  const read = (query: string, org_id: string | null): Promise<EngineText> =>
    engine.read({ org_id, user: USER, query, signal });
  for (const { what, query, org_id, expected } of escapeAttempts(database, engine.database)) {
    const answer = await read(query, org_id);
    const asExpected =
      'text' in expected
        ? answer.code === null && answer.text === expected.text
        : answer.code !== null && expected.codes.includes(answer.code);
    if (asExpected) continue;
    found(`${query} was answered ${answer.text.slice(0, 200).trim()}`);
    return `it does not hold that ${what}`;
  }
  const listed = await read(LIST_FUNCTIONS, null);
  const functions = new Set(listed.text.trim().split('\n'));
  if (listed.code !== null || !functions.has('file')) return 'the engine does not say which functions it has';
  for (const query of HIDDEN_CALLS)
    if ((await checkQuery({ engine, functions }, query, { user: USER, signal })) === null) {
      found(`${query} was not found out`);
      return "the engine's parser does not say what a query does";
    }
  const harmless = await checkQuery({ engine, functions }, HARMLESS_QUERY, {
    user: USER,
    signal,
  });
  if (harmless !== null) return `the engine's parser does not say what a query does: ${harmless.message}`;
  if (isAllowedFunction('file') || isAllowedTableFunction('file'))
    return 'the list of functions for analysts is broken';
  return { functions };
}
