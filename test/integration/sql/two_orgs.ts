// Two organizations whose rows are stored side by side, a file in the engine's folder, and the HTTP
// client that sends analysts' attacks.
import { writeFileSync } from 'node:fs';
import { request } from 'node:http';
import path from 'node:path';
import { text as readText } from 'node:stream/consumers';
import type { ClickHouse } from '../../../sql/client/client.ts';
import { ORG_TABLES } from '../../../sql/analysts/org_views.ts';
import type { Attack } from './attacks.ts';

/** Part of every text of org_b. */
export const SECRET = 'SECRET_OF_ORG_B';
/** Content of a file in the engine's folder. */
const FILE_SECRET = 'CONTENT_OF_A_FILE';
const FILE_NAME = 'canary.txt';

export interface Reply {
  status: number;
  headers: Record<string, unknown>;
  text: string;
}

export interface Sent {
  method?: string;
  url?: Record<string, string>;
  /** Each value of an array is sent as a separate header. */
  headers?: Record<string, string | string[]>;
  body?: string | Buffer;
}

/** Sends a request with exactly the caller's headers. */
export function send(base: string, { method = 'POST', url = {}, headers = {}, body = '' }: Sent): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const target = new URL(base);
    target.search = String(new URLSearchParams(url));
    const req = request(target, { method, agent: false, headers: { connection: 'close', ...headers } }, (res) => {
      readText(res).then((text) => {
        resolve({ status: res.statusCode ?? 0, headers: res.headers, text });
      }, reject);
    });
    req.on('error', reject);
    req.end(body);
  });
}

const filled = (text: string, folder: string): string =>
  text.replaceAll('{canary}', path.join(folder, FILE_NAME)).replaceAll('{folder}', folder);
/** Returns the request of an attack, with its placeholders replaced by paths. */
export const sentOf = ({ query, url = {}, headers = {}, body }: Attack, folder: string): Sent => ({
  url: Object.fromEntries(Object.entries(url).map(([name, value]) => [name, filled(value, folder)])),
  headers,
  body: body ?? filled(query, folder),
});
/** Returns everything that an answer reveals: headers and body. */
export const told = ({ headers, text }: Reply): string => JSON.stringify(headers) + text;
/** True for a rejected query, including one that fails after its first bytes. */
export const isRefused = ({ status, headers, text }: Reply): boolean =>
  status !== 200 || headers['x-clickhouse-exception-code'] !== undefined || text.includes('DB::Exception');

/** Inserts the same rows for org_a and org_b, with different texts, in the same granules. */
export async function fillTwoOrgs(client: ClickHouse): Promise<void> {
  const run = (sql: string) => client.execute({ name: 'fill', sql, timeoutMs: 10_000 });
  for (const [org, secret] of [
    ['org_a', 'own'],
    ['org_b', SECRET],
  ] as const) {
    await run(`INSERT INTO spans (org_id, started_at, ended_at, trace_id, span_id, event_key, model, cost_usd, attributes)
      SELECT '${org}', toDateTime64('2026-01-01 00:00:00', 3, 'UTC') + number AS at, at + 1, '${secret}', toString(number), number, 'm', 0.1, '{"a":"${secret}"}' FROM numbers(500)`);
    await run(`INSERT INTO span_texts (org_id, started_at, span_id, prompt, log_seq)
      SELECT '${org}', toDateTime64('2026-01-01 00:00:00', 3, 'UTC') + number, toString(number), '${secret}', number FROM numbers(500)`);
    await run(
      `INSERT INTO span_texts_recent (org_id, span_id, prompt, log_seq) VALUES ('${org}', 'recent', '${secret}', 9000)`,
    );
    await run(`INSERT INTO traces (org_id, anchor, trace_key, trace_id, started_at, ended_at, outcome, spans, sign, version)
      SELECT '${org}', toDateTime64('2026-01-01 00:00:00', 3, 'UTC') AS at, sipHash64('t'), '${secret}', at, at + 1, 'success', 1, 1, 1`);
    await run(
      `INSERT INTO usage_events (org_id, hour, agent_id, events, storage_bytes, cost_usd) VALUES ('${org}', '2026-01-01 00:00:00', '${secret}', 3, 1, 0.1)`,
    );
    await run(
      `INSERT INTO judge_scores (org_id, trace_id, started_at, judge_id, reason) VALUES ('${org}', '${secret}', '2026-01-01 00:00:00', 'j', '${secret}')`,
    );
    await run(
      `INSERT INTO user_scores (org_id, trace_id, started_at, score_id, name, comment) VALUES ('${org}', '${secret}', '2026-01-01 00:00:00', 's', 'n', '${secret}')`,
    );
  }
  // A row of org_b that is later than every row of org_a, so that org_b also has more rows.
  await run(`INSERT INTO spans (org_id, started_at, ended_at, trace_id, span_id, event_key, model)
    SELECT 'org_b', toDateTime64('2026-01-20 00:00:00', 3, 'UTC') AS at, at, '${SECRET}', 'late', 1, 'n' FROM numbers(1)`);
  // One part per table, so that rows of both organizations share a granule.
  for (const table of ORG_TABLES) await run(`OPTIMIZE TABLE ${table} FINAL`);
}

/**
 * Writes a file into the engine's folder.
 * @returns the folder
 */
export async function plantFile(client: ClickHouse): Promise<string> {
  const [disk] = await client.rows<{ path: string }>({
    name: 'disk',
    sql: 'SELECT path FROM system.disks',
    timeoutMs: 5000,
  });
  const folder = (disk?.path ?? '').replace(/\/$/, '');
  writeFileSync(path.join(folder, FILE_NAME), FILE_SECRET);
  return folder;
}
