// Side channels of an answer: no format and no header contains a count of another organization's
// rows.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isAllowedFormat } from '../../../api/telemetry/analysts/check.ts';
import { createClickHouse, type ClickHouse } from '../../../sql/client/client.ts';
import { migrate } from '../../../sql/client/migrate.ts';
import { startTestEngine, type TestEngine } from '../../support/clickhouse.ts';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import { call, startTestApi, type TestApi } from '../api/an_api.ts';
import { anAccount, asOperator } from '../a_tenant.ts';
import { fillTwoOrgs, type Reply, send, told } from './two_orgs.ts';

/** fillTwoOrgs gives each organization this many spans, in the same granules. */
const OWN_SPANS = 500;
let engine: TestEngine;
let nats: TestNats;
let client: ClickHouse;
let api: TestApi;
let formats: string[];
let login: Record<string, string>;

const ask = (body: string, url: Record<string, string> = {}): Promise<Reply> =>
  send(api.url, { body, url, headers: login });

beforeAll(async () => {
  [engine, nats] = await Promise.all([startTestEngine(), startTestNats()]);
  client = createClickHouse({ url: engine.url });
  await migrate(client, {});
  await fillTwoOrgs(client);
  const sql = 'SELECT name FROM system.formats WHERE is_output ORDER BY name';
  formats = (await client.rows<{ name: string }>({ name: 'formats', sql, timeoutMs: 5000 })).map(({ name }) => name);
  api = await startTestApi({ natsUrl: nats.url, clickhouseUrl: engine.url });
  await anAccount({ api }, { org: 'org_a' });
  const made = await call(api, 'POST', '/admin/orgs/org_a/analysts', { body: { name: 'a' }, headers: asOperator });
  const { user, password } = made.json?.['data'] as { user: string; password: string };
  login = { 'X-ClickHouse-User': user, 'X-ClickHouse-Key': password };
});

afterAll(async () => {
  await api.close();
  await client.close();
  await Promise.all([engine.remove(), nats.remove()]);
});

describe('an answer to an analyst of one organization', () => {
  it("an answer to an organization's analyst is in no format that reports how many rows were read", async () => {
    expect(formats.filter((name) => /progress/i.test(name)).filter(isAllowedFormat)).toEqual([]);
    const telling: string[] = [];
    for (const format of formats.filter(isAllowedFormat)) {
      const replies = [
        await ask(
          `SELECT span_id AS s, count() AS n FROM analyst_spans GROUP BY s ORDER BY s LIMIT 2 FORMAT ${format}`,
        ),
        await ask('SELECT span_id AS s FROM analyst_spans LIMIT 2', {
          default_format: format,
          send_progress_in_http_headers: '1',
        }),
        await ask(`SELECT span_id AS s FROM analyst_spans LIMIT 2 FORMAT ${format}`, {
          output_format_write_statistics: '1',
          wait_end_of_query: '1',
        }),
      ];
      if (replies.some(({ status, text }) => status !== 200 && !text.includes('DB::Exception')))
        telling.push(`${format}: no answer`);
      if (
        replies.some((reply) =>
          /read_rows|rows_read|bytes_read|statistics|progress|x-clickhouse-summary/i.test(told(reply)),
        )
      )
        telling.push(format);
    }
    expect(telling).toEqual([]);
  });

  it('aggregate functions named in strings are accepted when they are on the list', async () => {
    for (const [query, expected] of [
      ["SELECT arrayReduce('sum', [1, 2])", '3\n'],
      ["SELECT arrayReduce('quantilesIf(0.5)', [1, 2, 3], [1, 1, 1])", '[2]\n'],
      ["SELECT arrayReduceInRanges('max', [(1, 2)], [1, 2])", '[2]\n'],
      ["SELECT finalizeAggregation(initializeAggregation('groupConcatState(\\',\\')', 'x'))", 'x\n'],
      ["SELECT finalizeAggregation(CAST(unhex('0300000000000000') AS AggregateFunction(sum, UInt8)))", '3\n'],
      ["SELECT JSONExtract('{\"a\":[1]}', 'a', 'Array(UInt8)')", '[1]\n'],
    ] as const)
      expect([query, (await ask(query)).text]).toEqual([query, expected]);
  });

  it("an answer to an organization's analyst counts only rows of its own before a limit", async () => {
    for (const format of ['JSON', 'JSONCompact', 'JSONColumnsWithMetadata', 'XML'])
      for (const query of [
        'SELECT span_id FROM analyst_spans LIMIT 1',
        'SELECT span_id FROM analyst_spans ORDER BY attributes LIMIT 1',
      ]) {
        const { text } = await ask(`${query} FORMAT ${format}`);
        const counted = /rows_before_limit_at_least\W+(\d+)/.exec(text)?.[1];
        expect([format, query, Number(counted) <= OWN_SPANS]).toEqual([format, query, true]);
      }
  });
});
