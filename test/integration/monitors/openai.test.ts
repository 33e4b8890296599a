// Monitors of calls that the official openai package makes through the gateway: the 95th percentile of
// the duration and the cost of each user alert once, and resolve once.
import { expect, it } from 'vitest';
import { json } from '../../support/model_server.ts';
import { toldEvents } from '../../support/told.ts';
import { aTrace, api, client, spanOf, upstream } from '../gateway/openai_client.ts';
import { COMPLETION, question } from '../gateway/openai_shapes.ts';
import { call, ORG } from '../api/an_api.ts';
import { evaluate } from './a_monitor.ts';

const SLOW_MS = 300;
/** More than one call costs, and less than five. */
const COST_USD = 0.00001;

async function monitorOf(fields: Record<string, unknown>): Promise<string> {
  const { status, json: made, text } = await call(api, 'POST', '/v1/monitors', { body: fields });
  expect([status, text]).toEqual([201, text]);
  return (made?.['data'] as { monitor_id: string }).monitor_id;
}

const told = async (): Promise<unknown[][]> =>
  (await toldEvents(api.log, ORG))
    .filter(({ event }) => event.startsWith('monitor.'))
    .map(({ event, payload }) => {
      const { name, group } = JSON.parse(payload) as { name: string; group: Record<string, string> };
      return [event, name, group];
    })
    .sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));

it('the duration of a model and the cost of a user alert once each, and resolve once each', async () => {
  const common = { window_minutes: 30, severity: 'critical' };
  const filters = [{ field: 'kind', op: 'eq', value: 'llm' }];
  const slow = await monitorOf({
    ...common,
    name: 'Slow',
    query: { view: 'spans', measures: [{ measure: 'duration_ms', agg: 'p95' }], filters },
    group_by: ['model'],
    threshold: { above: SLOW_MS / 2 },
  });
  const costly = await monitorOf({
    ...common,
    name: 'Costly',
    query: { view: 'spans', measures: [{ measure: 'cost_usd', agg: 'sum' }], filters },
    group_by: ['user_id'],
    threshold: { above: COST_USD },
  });
  upstream.behave((res, reached) => {
    setTimeout(() => {
      json(200, JSON.stringify(COMPLETION))(res, reached);
    }, SLOW_MS);
  });
  for (const [user, calls] of [
    ['ann', 5],
    ['bob', 1],
  ] as const)
    for (let serial = 0; serial < calls; serial++) {
      const { trace_id, headers } = aTrace({ 'X-Service-User-Id': user });
      await client.chat.completions.create({ model: 'gpt-4o-mini', messages: question }, { headers });
      await spanOf(trace_id);
    }
  await evaluate(api);
  await evaluate(api);
  const alerts = [
    ['monitor.alerting', 'Costly', { user_id: 'ann' }],
    ['monitor.alerting', 'Slow', { model: 'gpt-4o-mini' }],
  ];
  expect(await told()).toEqual(alerts);
  for (const [id, above] of [
    [slow, 1_000_000],
    [costly, 1],
  ] as const)
    await call(api, 'PATCH', `/v1/monitors/${id}`, { body: { threshold: { above } } });
  await evaluate(api);
  await evaluate(api);
  expect(await told()).toEqual([...alerts, ...alerts.map(([, ...rest]) => ['monitor.resolved', ...rest])]);
});
