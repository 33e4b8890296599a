// Tests whether the engine confines analysts: creates the views and users, then tries to escape as
// that user. No analyst is created or served until every attempt has failed.
import { isAllowedFunction, isAllowedTableFunction } from './functions.ts';
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
/** No org has this id. */
const STRANGER = '!selftest';

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

/** What a query of the engine's user for analysts has to come to, past the parser's check: the codes of a refusal, or an answer. */
type Expected = { codes: readonly number[] } | { text: string };

const DENIED = { codes: [497] };
const UNSEEN = { codes: [60, 497] };
/** The embedded engine has no working folder, and file() fails without one before the engine looks at rights (ops/launch/clickhouse/launcher.ts). */
const NO_FILE = { codes: [497, 1001] };

interface Attempt {
  /** What has to be so, in words for whoever asked for an analyst. */
  what: string;
  query: string;
  org_id: string | null;
  expected: Expected;
}

function attempts(database: string, views: string): Attempt[] {
  const stranger = (what: string, query: string, expected: Expected) => ({ what, query, org_id: STRANGER, expected });
  return [
    stranger('a plain query is answered', 'SELECT 1', { text: '1\n' }),
    stranger('its user can only read', "SELECT value FROM system.settings WHERE name = 'readonly'", { text: '1\n' }),
    stranger('its user reads the views', `SELECT count() FROM \`${views}\`.analyst_spans`, { text: '0\n' }),
    {
      what: 'no row is shown without an org',
      query: `SELECT count() FROM (SELECT 1 FROM \`${views}\`.analyst_spans LIMIT 1)`,
      org_id: null,
      expected: { text: '0\n' },
    },
    {
      what: 'no use is shown without an org',
      query: `SELECT count() FROM (SELECT 1 FROM \`${views}\`.analyst_usage LIMIT 1)`,
      org_id: null,
      expected: { text: '0\n' },
    },
    stranger("the service's tables are closed", `SELECT count() FROM \`${database}\`.spans`, DENIED),
    stranger("the operator's views are closed", `SELECT count() FROM \`${database}\`.analyst_spans`, DENIED),
    stranger(
      'indexes are closed (mergeTreeIndex)',
      `SELECT count() FROM mergeTreeIndex('${database}', 'spans')`,
      DENIED,
    ),
    stranger('files are closed', "SELECT * FROM file('/etc/hostname', 'LineAsString')", NO_FILE),
    stranger('addresses are closed (url)', "SELECT * FROM url('http://127.0.0.1:9/', 'LineAsString')", DENIED),
    stranger(
      'other servers are closed (remote)',
      `SELECT count() FROM remote('127.0.0.1', '${database}', 'spans')`,
      DENIED,
    ),
    stranger('the log of queries is closed', 'SELECT count() FROM system.query_log', UNSEEN),
    stranger('queries that run are closed', 'SELECT count() FROM system.processes', UNSEEN),
    stranger('memory cannot be raised', 'SELECT 1 SETTINGS max_memory_usage = 0', { codes: [164, 452] }),
    stranger('readonly cannot be lifted', 'SELECT 1 SETTINGS readonly = 0', { codes: [164, 452] }),
    stranger('time cannot be raised', 'SELECT 1 SETTINGS max_execution_time = 0', { codes: [164, 452] }),
    stranger('nothing can be written', `INSERT INTO \`${views}\`.analyst_spans (org_id) VALUES ('x')`, {
      codes: [164, 497],
    }),
  ];
}

/** What the parser's check has to refuse: the ways in which a function gets into a query without its parentheses. */
const HIDDEN = [
  "SELECT file('/etc/hostname')",
  "SELECT arrayMap(file, ['/etc/hostname'])",
  "SELECT * APPLY(file) FROM (SELECT '/etc/hostname')",
  "SELECT arrayMap(x -> `file`(x), ['/etc/hostname'])",
  'SELECT 1 ORDER BY 1 WITH FILL INTERPOLATE (o AS file(o))',
  'SELECT 1 SETTINGS max_threads = 1',
  "SELECT * FROM view(SELECT file('x'))",
  'SYSTEM FLUSH LOGS',
];

/** @param found told what a way out was, with the statement that found it: for the log, not for who asks */
async function tryToEscape(
  engine: AnalystEngine,
  database: string,
  found: (what: string) => void,
): Promise<Confined | string> {
  const signal = AbortSignal.timeout(TRY_MS_MAX);
  const read = (query: string, org_id: string | null): Promise<EngineText> =>
    engine.read({ org_id, user: USER, query, signal });
  for (const { what, query, org_id, expected } of attempts(database, engine.database)) {
    const answer = await read(query, org_id);
    const asExpected =
      'text' in expected
        ? answer.code === null && answer.text === expected.text
        : answer.code !== null && expected.codes.includes(answer.code);
    if (asExpected) continue;
    found(`${query} was answered ${answer.text.slice(0, 200).trim()}`);
    return `the engine fails the check that ${what}`;
  }
  const listed = await read('SELECT DISTINCT lower(name) FROM system.functions', null);
  const functions = new Set(listed.text.trim().split('\n'));
  if (listed.code !== null || !functions.has('file')) return 'the engine does not say which functions it has';
  for (const query of HIDDEN)
    if ((await checkQuery({ engine, functions }, query, { user: USER, signal })) === null) {
      found(`${query} passed the check`);
      return "the engine's parser does not print all parts of a query";
    }
  const harmless = await checkQuery({ engine, functions }, 'SELECT count() AS n FROM analyst_spans', {
    user: USER,
    signal,
  });
  if (harmless !== null) return `the engine's parser does not print all parts of a query: ${harmless.message}`;
  if (isAllowedFunction('file') || isAllowedTableFunction('file'))
    return 'the list of functions for analysts is broken';
  return { functions };
}
