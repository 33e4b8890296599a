// Helpers for tests of judges: an organization with a key for each test, judges created over HTTP,
// sent traces, and their results.
import { expect } from 'vitest';
import { EVENTS_STREAM } from '../../../schemas/streams.ts';
import { FINGERPRINT_HEADER, type ServiceEvent, serviceEventsCodec } from '../../../schemas/codec.ts';
import { createTestDatabase, type TestDatabase } from '../../support/clickhouse.ts';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import { type Answer, call, startTestApi, type TestApi } from '../api/an_api.ts';
import { aTenant } from '../a_tenant.ts';

export interface JudgeBench {
  database: TestDatabase;
  nats: TestNats;
  api: TestApi;
  /** Creates an organization; later calls use the newest one. */
  newOrg(): Promise<void>;
  org(): string;
  call(method: string, path: string, body?: unknown, headers?: Record<string, string | undefined>): Promise<Answer>;
  /** Returns a key of the organization with these scopes. */
  keyOf(scopes: string[]): Promise<string>;
  /** Creates a deterministic judge, and resolves with its id. */
  judge(rule: Record<string, unknown>, more?: Record<string, unknown>): Promise<string>;
  /** Sends custom events, and resolves with their trace ids. */
  send(events: readonly Record<string, unknown>[]): Promise<string[]>;
  /** Returns the payloads of the organization's events of a kind, oldest first. */
  told(event: string): Promise<(Record<string, unknown> & { event_id: string })[]>;
  rows<T>(sql: string): Promise<T[]>;
  close(): Promise<void>;
}

export async function openJudgeBench(): Promise<JudgeBench> {
  const [database, nats] = await Promise.all([createTestDatabase(), startTestNats()]);
  const api = await startTestApi({ natsUrl: nats.url, clickhouseUrl: database.url });
  let tenant = await aTenant({ api });
  const ask: JudgeBench['call'] = (method, path, body, headers = {}) =>
    call(api, method, path, {
      ...(body === undefined ? {} : { body }),
      headers: { ...tenant.key, ...headers },
    });
  return {
    database,
    nats,
    api,
    keyOf: async (scopes) => String((await tenant.keyOf(...scopes))['X-Org-Api-Key']),
    org: () => tenant.org,
    call: ask,
    async newOrg() {
      tenant = await aTenant({ api });
    },
    async judge(rule, more = {}) {
      const made = await ask('POST', '/v1/judges', {
        name: 'a judge',
        kind: 'deterministic',
        rule,
        threshold: { pass: 1 },
        ...more,
      });
      expect([made.status, made.text]).toEqual([201, made.text]);
      return (made.json?.['data'] as { judge_id: string }).judge_id;
    },
    async send(events) {
      const answer = await ask('POST', `/orgs/${tenant.org}/ingest/custom`, { events });
      expect([answer.status, answer.text]).toEqual([200, answer.text]);
      return (answer.json?.['data'] as { events: { trace_id: string }[] }).events.map(({ trace_id }) => trace_id);
    },
    async told(event) {
      const { state } = await api.log.jsm.streams.info(EVENTS_STREAM);
      const found: ServiceEvent[] = [];
      for (let seq = state.first_seq; state.messages > 0 && seq <= state.last_seq; seq += 1) {
        const message = await api.log.jsm.streams.getMessage(EVENTS_STREAM, { seq });
        if (message !== null)
          found.push(...serviceEventsCodec.decode(message.data, message.header.get(FINGERPRINT_HEADER)).events);
      }
      return found
        .filter((one) => one.org_id === tenant.org && one.event === event)
        .map(({ payload, event_id }) => ({ ...(JSON.parse(payload) as Record<string, unknown>), event_id }));
    },
    async rows<T>(sql: string): Promise<T[]> {
      const text = await database.run(`${sql} FORMAT JSONEachRow SETTINGS output_format_json_quote_64bit_integers = 0`);
      return text
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => JSON.parse(line) as T);
    },
    async close() {
      await api.close();
      await nats.remove();
      await database.drop();
    },
  };
}
