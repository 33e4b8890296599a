// Previews of monitors, mutes and changes against the real engine: the values of moving windows are
// those that analytics gives for each window, and a preview alerts when the values pass the threshold.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { toldEvents } from '../../support/told.ts';
import { TestService } from '../a_service.ts';
import { aTenant, type Tenant } from '../a_tenant.ts';
import type { TestApi } from '../api/an_api.ts';
import { createMonitor, evaluate, failures, getMonitor, sendFailures } from './a_monitor.ts';

const MINUTE_MS = 60_000;

interface Preview {
  since: string;
  until: string;
  step_minutes: number;
  groups: { group: Record<string, string>; values: (number | null)[] }[];
  truncated: boolean;
  alerts: { group: Record<string, string>; from: string; until: string | null; value: number | null }[];
}

let service: TestService;
let api: TestApi;

beforeAll(async () => {
  service = await TestService.start();
  api = await service.startApi();
});
afterAll(async () => {
  await service.close();
});

const tenantOf = () => aTenant({ api, database: service.database });

async function preview(tenant: Tenant, body: Record<string, unknown>): Promise<Preview> {
  const answer = await tenant.call('POST', '/v1/monitors/preview', { body });
  expect([answer.status, answer.text]).toEqual([200, answer.text]);
  return answer.json?.['data'] as Preview;
}

/** Sends spans of two models over the last three hours, and resolves with their starts. */
async function sendHistory(tenant: Tenant): Promise<void> {
  const now = Date.now();
  const events = Array.from({ length: 90 }, (_, serial) => {
    const started = now - (serial * 2 + 1) * MINUTE_MS;
    return {
      name: 'call',
      outcome: 'success',
      started_at: new Date(started).toISOString(),
      ended_at: new Date(started + 100 + (serial % 7) * 100).toISOString(),
      attributes: { span_kind: 'llm', model: serial % 3 === 0 ? 'large' : 'small', serial },
    };
  });
  await tenant.ingest('custom', { events });
  await tenant.landed(events.length);
}

describe('the preview of a monitor', () => {
  it.each([
    ['p95', 'duration_ms', 7],
    ['sum', 'count', 30],
    ['avg', 'duration_ms', 60],
  ])('has the values of %s of %s over windows of %i minutes that analytics has', async (agg, measure, window) => {
    const tenant = await tenantOf();
    await sendHistory(tenant);
    const query = { view: 'spans', measures: [{ measure, agg }] };
    const body = { query, group_by: ['model'], window_minutes: window, threshold: { above: 0 }, hours: 3 };
    const found = await preview(tenant, body);
    expect(found.groups.map(({ group }) => group['model']).sort()).toEqual(['large', 'small']);
    const step = found.step_minutes * MINUTE_MS;
    const count = Math.round((Date.parse(found.until) - Date.parse(found.since)) / step) + 1;
    for (const at of [0, Math.floor(count / 3), Math.floor(count / 2), count - 1]) {
      const until = Date.parse(found.since) + at * step;
      const { json } = await tenant.call('POST', '/v1/analytics/query', {
        body: {
          ...query,
          group_by: ['model'],
          since: new Date(until - window * MINUTE_MS).toISOString(),
          until: new Date(until).toISOString(),
        },
      });
      const rows = new Map((json?.['data'] as { rows: [string, number][] }).rows);
      for (const { group, values } of found.groups) {
        expect(values).toHaveLength(count);
        const expected = rows.get(group['model'] ?? '') ?? (agg === 'sum' && at > 0 ? 0 : null);
        // A digest of the same values in another order may differ in its last digits.
        if (expected === null) expect(values[at] ?? null).toBeNull();
        else expect(values[at]).toBeCloseTo(expected, 3);
      }
    }
  });

  it('alerts when a value is past the threshold, and counts no rows as 0 where the measure is a sum', async () => {
    const tenant = await tenantOf();
    await sendHistory(tenant);
    const query = { view: 'spans', measures: [{ measure: 'count' }] };
    const steady = await preview(tenant, { query, window_minutes: 30, threshold: { below: 10 }, hours: 6 });
    expect(steady.alerts).toMatchObject([{ group: {}, from: steady.since, value: 0 }]);
    expect(steady.alerts[0]?.until).not.toBeNull();
    expect(steady.groups).toHaveLength(1);
    const silent = await preview(tenant, {
      query: { ...query, filters: [{ field: 'model', value: 'none' }] },
      window_minutes: 5,
      threshold: { below: 1 },
      hours: 1,
    });
    expect(silent.alerts).toMatchObject([{ from: silent.since, until: null, value: 0 }]);
  });

  it('names the field that it cannot answer, and needs costs:read for costs', async () => {
    const tenant = await tenantOf();
    const ask = async (fields: Record<string, unknown>, headers?: Record<string, string | undefined>) => {
      const body = { query: failures()['query'], window_minutes: 5, threshold: { above: 1 }, ...fields };
      const { status, json } = await tenant.call('POST', '/v1/monitors/preview', {
        body,
        ...(headers === undefined ? {} : { headers }),
      });
      return [status, json?.['detail']];
    };
    expect(await ask({ hours: 169 })).toEqual([422, expect.stringContaining('hours')]);
    expect(await ask({ window_minutes: 1, hours: 48 })).toEqual([422, expect.stringContaining('at most 24')]);
    expect(await ask({ group_by: ['nonsense'] })).toEqual([422, expect.stringContaining('group_by[0]')]);
    expect(await ask({ name: 'x' })).toEqual([422, expect.stringContaining('name')]);
    const key = await tenant.keyOf('traces:read');
    const query = { view: 'spans', measures: [{ measure: 'cost_usd' }] };
    expect(await ask({ query }, key)).toEqual([403, expect.stringContaining('costs:read')]);
  });
});

describe('a muted monitor', () => {
  it('is evaluated, notifies nobody of a new alert, and lists its changes', async () => {
    const tenant = await tenantOf();
    const muted_until = new Date(Date.now() + 60 * MINUTE_MS).toISOString();
    const monitor = await createMonitor(tenant, { muted_until });
    await sendFailures(tenant, { ann: 4 });
    await evaluate(api);
    expect(await getMonitor(tenant, monitor)).toMatchObject({ state: 'alerting', muted_until });
    const told = async () =>
      (await toldEvents(api.log, tenant.org)).map(({ event }) => event).filter((event) => event.startsWith('monitor.'));
    expect(await told()).toEqual([]);
    const changes = (await tenant.get(`/v1/monitors/${monitor.monitor_id}/changes`)).json;
    expect(changes).toMatchObject({
      data: [{ event: 'monitor.alerting', group: { user_id: 'ann' }, value: 4, reason: null, notified: false }],
      meta: { total: 1 },
    });
    const unmuted = await tenant.call('PATCH', `/v1/monitors/${monitor.monitor_id}`, { body: { muted_until: null } });
    expect(unmuted.status).toBe(200);
    await evaluate(api);
    await evaluate(api);
    expect(await told()).toEqual(['monitor.alerting']);
  });
});
