// Helpers for tests of repricing: an organization with its own prices, and its costs in every table
// that stores them.
import { expect } from 'vitest';
import { picoToDecimal, usdToPico } from '../../../pipeline/domain/pricing/money.ts';
import type { OrgPrice } from '../../../pipeline/domain/pricing/pricing.ts';
import { eventually } from '../../support/wait.ts';
import type { TestDatabase } from '../../support/clickhouse.ts';
import type { Answer, TestApi } from '../api/an_api.ts';
import { type Account, anAccount, asOperator, Tenant } from '../a_tenant.ts';
import type { TestService } from '../a_service.ts';

export const HOUR_MS = 3_600_000;
export const DAY_MS = 86_400_000;
export const MODEL = 'our-llama';

export const priced = (input: number, output: number, cached?: number): OrgPrice => ({
  model: MODEL,
  input_usd_per_mtok: input,
  output_usd_per_mtok: output,
  ...(cached === undefined ? {} : { cached_input_usd_per_mtok: cached }),
});

export interface Sent {
  trace_id: string;
  model?: string;
  input?: number;
  output?: number;
  cached?: number;
  attributes?: Record<string, unknown>;
  /** Age of the call, in milliseconds before now. */
  agoMs?: number;
}

export const dataOf = (answer: Answer): Record<string, unknown> => answer.json?.['data'] as Record<string, unknown>;

/** Returns the same cost for every table, in the form of costs(). */
export const everywhere = (usd: string): Record<string, string> =>
  Object.fromEntries(
    ['spans', 'traces', 'usage', 'view_spans', 'view_traces', 'view_usage', 'view_costs_daily'].map((name) => [
      name,
      picoToDecimal(usdToPico(usd)),
    ]),
  );

/** Expects that no job has left a table of its corrections behind. */
export async function expectNoLookups({ database }: TestService): Promise<void> {
  const sql = "SELECT count() FROM system.tables WHERE database = currentDatabase() AND name LIKE 'span_corrections_%'";
  expect((await database.run(sql)).trim()).toBe('0');
}

let sent = 0;

export class PricedTenant extends Tenant {
  readonly #database: TestDatabase;

  constructor({ database }: TestService, api: TestApi, account: Account) {
    super({ api, database }, account);
    this.#database = database;
  }

  /** Returns the single value that a query selects, as text. */
  async one(sql: string): Promise<string> {
    return (await this.#database.run(sql)).trim();
  }

  async setPrices(...prices: OrgPrice[]): Promise<void> {
    expect((await this.call('PUT', `/orgs/${this.org}/prices`, { body: { prices } })).status).toBe(200);
  }

  /** Sends one model call; each call is a new event. */
  async send({
    trace_id,
    model = MODEL,
    input = 1000,
    output = 100,
    cached = 0,
    attributes = {},
    agoMs = 0,
  }: Sent): Promise<void> {
    const call = ++sent;
    const body = {
      trace_id,
      request: { model, messages: [{ role: 'user', content: `question ${call}` }] },
      response: {
        id: `r${call}`,
        model,
        choices: [{ index: 0, message: { role: 'assistant', content: 'answer' }, finish_reason: 'stop' }],
        usage: {
          prompt_tokens: input,
          completion_tokens: output,
          total_tokens: input + output,
          prompt_tokens_details: { cached_tokens: cached },
        },
      },
      started_at: new Date(Date.now() - agoMs).toISOString(),
      duration_ms: 5,
      outcome: 'success',
      attributes: { agent_id: 'agent_1', department: 'sales', ...attributes },
    };
    await this.ingest('chatcompletion', body);
  }

  /** Calls the repricing job. The job answers 409 while a scheduled run is in progress. */
  reprice(more: Record<string, unknown> = {}): Promise<Answer> {
    const body = {
      org_id: this.org,
      since: new Date(Date.now() - 10 * DAY_MS).toISOString(),
      until: new Date(Date.now() + HOUR_MS).toISOString(),
      ...more,
    };
    return this.call('POST', '/admin/reprice', { headers: asOperator, body });
  }

  /** Calls the job until no other run is in progress: the schedule starts one every few minutes. */
  async repriced(more: Record<string, unknown> = {}): Promise<Record<string, unknown>> {
    const answers: Answer[] = [];
    await eventually(
      async () => {
        answers.push(await this.reprice(more));
        return answers.at(-1)?.status !== 409;
      },
      { what: 'the job' },
    );
    const answer = answers.at(-1);
    expect([answer?.status, answer?.json]).toEqual([200, answer?.json]);
    return answer?.json?.['data'] as Record<string, unknown>;
  }

  /** Returns the cost of the organization in each table that stores it, as decimal text. */
  async costs(): Promise<Record<string, string>> {
    const where = `WHERE org_id = '${this.org}'`;
    const sums: Record<string, string> = {
      spans: `SELECT sum(cost_usd) FROM spans ${where}`,
      traces: `SELECT sum(cost_usd * sign) FROM traces ${where}`,
      usage: `SELECT sum(cost_usd) FROM usage_events ${where}`,
      view_spans: `SELECT sum(cost_usd) FROM analyst_spans ${where}`,
      view_traces: `SELECT sum(cost_usd) FROM analyst_traces ${where}`,
      view_usage: `SELECT sum(cost_usd) FROM analyst_usage ${where}`,
      view_costs_daily: `SELECT sum(cost_usd) FROM analyst_costs_daily ${where}`,
    };
    const found = await Promise.all(Object.values(sums).map((sql) => this.one(sql)));
    return Object.fromEntries(
      Object.keys(sums).map((name, index) => [name, picoToDecimal(usdToPico(found[index] ?? '0'))]),
    );
  }

  /**
   * Expects that the sums agree by trace, by day and dimension, by hour, and for each text, and
   * that no data of a correction is left.
   */
  async expectAgreement(): Promise<void> {
    const spans = `SELECT trace_id, sum(cost_usd) AS cost, count() AS spans FROM spans WHERE org_id = '${this.org}' GROUP BY trace_id`;
    const traces = `SELECT trace_id, cost_usd AS cost, spans FROM analyst_traces WHERE org_id = '${this.org}'`;
    expect(
      await this.one(
        `SELECT count() FROM (${spans}) AS s FULL JOIN (${traces}) AS t USING trace_id WHERE s.cost != t.cost OR s.spans != t.spans`,
      ),
    ).toBe('0');
    const dimensions = 'day, model, agent_id, department, realm';
    const own = `SELECT toDate(started_at) AS day, model, agent_id, department, realm, sum(cost_usd) AS cost, sum(input_tokens) AS tokens FROM spans WHERE org_id = '${this.org}' GROUP BY ${dimensions}`;
    const used = `SELECT ${dimensions}, sum(cost_usd) AS cost, sum(input_tokens) AS tokens FROM usage_events WHERE org_id = '${this.org}' GROUP BY ${dimensions}`;
    expect(
      await this.one(
        `SELECT count() FROM (${own}) AS s FULL JOIN (${used}) AS u USING (${dimensions}) WHERE s.cost != u.cost OR s.tokens != u.tokens`,
      ),
    ).toBe('0');
    const hours = `SELECT toStartOfHour(received_at) AS hour, sum(cost_usd) AS cost FROM spans WHERE org_id = '${this.org}' GROUP BY hour`;
    const usedHours = `SELECT hour, sum(cost_usd) AS cost FROM usage_events WHERE org_id = '${this.org}' GROUP BY hour`;
    expect(
      await this.one(
        `SELECT count() FROM (${hours}) AS s FULL JOIN (${usedHours}) AS u ON s.hour = u.hour WHERE s.cost != u.cost`,
      ),
    ).toBe('0');
    const key4 = 'partition, log_seq, log_index, log_sub';
    const texts = `SELECT ${key4}, cost_usd FROM span_texts WHERE org_id = '${this.org}' UNION DISTINCT SELECT ${key4}, cost_usd FROM span_texts_recent WHERE org_id = '${this.org}'`;
    expect(
      await this.one(
        `SELECT count() FROM (${texts}) AS t INNER JOIN (SELECT ${key4}, cost_usd FROM spans WHERE org_id = '${this.org}') AS s USING (${key4}) WHERE t.cost_usd != s.cost_usd`,
      ),
    ).toBe('0');
    expect(await this.one(`SELECT count() FROM span_corrections WHERE org_id = '${this.org}'`)).toBe('0');
  }
}

/** Creates an organization without prices of its own. */
export async function aPricedTenant(service: TestService, api: TestApi): Promise<PricedTenant> {
  return new PricedTenant(service, api, await anAccount({ api }));
}
