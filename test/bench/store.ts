// The benchmark's own connection to ClickHouse: counts what has landed without the service.
import { request } from 'node:http';
import { text as readText } from 'node:stream/consumers';

/** Runs a statement and returns the answer's text. */
export type RunSql = (sql: string, settings?: Record<string, string>) => Promise<string>;

/**
 * Opens a connection for each statement: the engine closes kept ones after seconds, and an insert
 * must not be sent twice. Statements may take minutes. The runner throws Error with ClickHouse's
 * reason.
 */
export function sqlRunner(clickhouseUrl: string): RunSql {
  const { origin, username, password, pathname } = new URL(clickhouseUrl);
  const auth = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  return (sql, settings = {}) => {
    const query = new URLSearchParams({ database: pathname.slice(1), ...settings });
    return new Promise((resolve, reject) => {
      const req = request(
        `${origin}/?${query.toString()}`,
        { method: 'POST', auth, agent: false, headers: { connection: 'close' } },
        (res) => {
          readText(res).then((answer) => {
            // An error after the start of the answer is in its text, under status 200.
            if (res.statusCode === 200 && !answer.includes('DB::Exception')) resolve(answer.trim());
            else reject(new Error(`ClickHouse: ${answer.slice(0, 400)}`));
          }, reject);
        },
      );
      req.on('error', reject);
      req.end(sql);
    });
  };
}

/**
 * Returns the rows that can be queried, and the texts that cannot be searched yet. Counts of whole
 * tables read no data.
 */
export async function landedRows(runSql: RunSql): Promise<{ spans: number; waiting: number }> {
  const [spans = '0', waiting = '0'] = (
    await runSql('SELECT (SELECT count() FROM spans), (SELECT count() FROM span_texts_recent) FORMAT TSV')
  ).split('\t');
  return { spans: Number(spans), waiting: Number(waiting) };
}

const MERGED_POLL_MS = 1000;
/** Consecutive checks that have to find no merge. */
const MERGED_LOOKS = 5;

/** Waits until the engine has no merge to do, or `msMax` have passed. */
export async function merged(runSql: RunSql, msMax: number): Promise<void> {
  const deadline = performance.now() + msMax;
  for (let quiet = 0; quiet < MERGED_LOOKS && performance.now() < deadline;) {
    quiet = (await runSql('SELECT count() FROM system.merges')) === '0' ? quiet + 1 : 0;
    await new Promise((resolve) => setTimeout(resolve, MERGED_POLL_MS));
  }
}

const CALM_BYTES = 200_000_000;
const CALM_POLL_MS = 500;

/**
 * Waits until merges hold little of the engine's memory, or `msMax` have passed. A large insert beside many merges of
 * texts would exceed it on a busy machine.
 */
export async function calm(runSql: RunSql, msMax: number): Promise<void> {
  const deadline = performance.now() + msMax;
  const held = async () => Number(await runSql('SELECT sum(memory_usage) FROM system.merges'));
  while (performance.now() < deadline && (await held()) > CALM_BYTES)
    await new Promise((resolve) => setTimeout(resolve, CALM_POLL_MS));
}
