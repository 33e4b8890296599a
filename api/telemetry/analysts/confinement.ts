// Tests whether the engine confines analysts: creates the views and users, then tries to escape as
// that user. No analyst is created or served until every attempt has failed.
import { isAllowedFunction, isAllowedTableFunction } from './functions.ts';
import { escapeAttempts, HARMLESS_QUERY, HIDDEN_CALLS, LIST_FUNCTIONS } from '../../../sql/analysts/escape_attempts.ts';
import { StoreUnavailable } from '../../../sql/client/client.ts';
import type { AnalystEngine, EngineText } from './engine.ts';
import { checkQuery } from './parse.ts';

/**
 * Milliseconds before a failed test is repeated, and before a passed one is: grants and policies of
 * a server can change.
 */
const AGAIN_MS = 5000;
const HOLDS_MS = 600_000;
const TRY_MS_MAX = 20_000;
const USER = 'selftest';

export interface ConfinementDeps {
  engine: AnalystEngine;
  /** The service's own database. */
  database: string;
  /**
   * Creates users, policies and views; resolves with the reason if the service may not. @throws
   * Error when the engine is unavailable
   */
  prepare: () => Promise<string | null>;
  /** Monotonic milliseconds. */
  now: () => number;
  /** Called with a way to escape that was found. */
  onEscape: (what: string) => void;
}

/** Knowledge about an engine that confines analysts. */
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

  /**
   * Resolves with the knowledge about the engine, or with the reason why it cannot confine
   * analysts. @throws Error when the engine is unavailable
   */
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
    if (refused !== null) return `the engine does not let the service create the user of analysts: ${refused}`;
    try {
      return await tryToEscape(this.#deps.engine, this.#deps.database, this.#deps.onEscape);
    } catch (cause) {
      throw new StoreUnavailable('the engine did not respond during the test whether it confines analysts', {
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
    return `the engine fails the check that ${what}`;
  }
  const listed = await read(LIST_FUNCTIONS, null);
  const functions = new Set(listed.text.trim().split('\n'));
  if (listed.code !== null || !functions.has('file')) return 'the engine does not say which functions it has';
  for (const query of HIDDEN_CALLS)
    if ((await checkQuery({ engine, functions }, query, { user: USER, signal })) === null) {
      found(`${query} passed the check`);
      return "the engine's parser does not print all parts of a query";
    }
  const harmless = await checkQuery({ engine, functions }, HARMLESS_QUERY, {
    user: USER,
    signal,
  });
  if (harmless !== null) return `the engine's parser does not print all parts of a query: ${harmless.message}`;
  if (isAllowedFunction('file') || isAllowedTableFunction('file'))
    return 'the list of functions for analysts is broken';
  return { functions };
}
