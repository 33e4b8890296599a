// Monitors of a tenant, as the API returns them, and the run of their job.
import { expect } from 'vitest';
import { eventually } from '../../support/wait.ts';
import { type Answer, call, type TestApi } from '../api/an_api.ts';
import { asOperator, type Tenant } from '../a_tenant.ts';

export interface Shown {
  monitor_id: string;
  state: string;
  error: string | null;
  evaluated_at: string | null;
  groups: { group: Record<string, string>; state: string; value: number | null }[];
  [field: string]: unknown;
}

/** A monitor of failed spans by end user. */
export const failures = (fields: Record<string, unknown> = {}): Record<string, unknown> => ({
  name: 'Failures by user',
  query: {
    view: 'spans',
    measures: [{ measure: 'errors', agg: 'sum' }],
    filters: [{ field: 'kind', op: 'eq', value: 'event' }],
  },
  group_by: ['user_id'],
  window_minutes: 60,
  threshold: { above: 2 },
  ...fields,
});

export const shown = (answer: Answer): Shown => answer.json?.['data'] as Shown;

export async function createMonitor(tenant: Tenant, fields: Record<string, unknown> = {}): Promise<Shown> {
  const answer = await tenant.call('POST', '/v1/monitors', { body: failures(fields) });
  expect([answer.status, answer.text]).toEqual([201, answer.text]);
  return shown(answer);
}

export const getMonitor = async (tenant: Tenant, { monitor_id }: Shown): Promise<Shown> =>
  shown(await tenant.get(`/v1/monitors/${monitor_id}`));

/** Runs the job now; the scheduled run may be in progress. */
export async function evaluate(api: TestApi): Promise<Record<string, unknown>> {
  let result: Record<string, unknown> = {};
  await eventually(
    async () => {
      const answer = await call(api, 'POST', '/admin/jobs/monitors/run', { headers: asOperator, body: {} });
      result = answer.json?.['data'] as Record<string, unknown>;
      return answer.status === 200;
    },
    { what: 'the run of the monitors' },
  );
  return result;
}

/** Sends events of end users that fail, this many of each. Resolves once they are stored. */
export async function sendFailures(tenant: Tenant, counts: Record<string, number>, before = 0): Promise<void> {
  const events = Object.entries(counts).flatMap(([user_id, count]) =>
    Array.from({ length: count }, (_, serial) => ({
      name: 'step',
      outcome: 'error',
      duration_ms: 5,
      attributes: { user_id, serial, run: before },
    })),
  );
  await tenant.ingest('custom', { events });
  await tenant.landed(before + events.length);
}
