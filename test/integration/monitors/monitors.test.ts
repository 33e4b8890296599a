// Monitors over HTTP and their evaluation by a real worker: definitions, states, notifications, and
// what a kill leaves.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startReceiver, type Receiver } from '../../support/receiver.ts';
import { toldEvents } from '../../support/told.ts';
import { eventually } from '../../support/wait.ts';
import { TestService } from '../a_service.ts';
import { aTenant, type Tenant } from '../a_tenant.ts';
import type { TestApi } from '../api/an_api.ts';
import { createMonitor, evaluate, failures, getMonitor, sendFailures, type Shown, shown } from './a_monitor.ts';

let service: TestService;
let api: TestApi;
let receiver: Receiver;

beforeAll(async () => {
  receiver = await startReceiver();
  service = await TestService.start();
  api = await service.startApi();
});
afterAll(async () => {
  await service.close();
  await receiver.close();
});

const tenantOf = () => aTenant({ api, database: service.database });
const told = async (tenant: Tenant) =>
  (await toldEvents(api.log, tenant.org))
    .filter(({ event }) => event.startsWith('monitor.'))
    .map(({ payload }) => JSON.parse(payload) as Record<string, unknown>);
const patch = async (tenant: Tenant, { monitor_id }: Shown, body: unknown): Promise<Shown> =>
  shown(await tenant.call('PATCH', `/v1/monitors/${monitor_id}`, { body }));
const endpoint = async (tenant: Tenant, path: string, events: string[]): Promise<string> =>
  String(
    (
      (
        await tenant.call('POST', `/orgs/${tenant.org}/webhooks`, {
          body: { url: receiver.url + path, events },
        })
      ).json?.['data'] as Record<string, unknown>
    )['webhook_id'],
  );

describe('definitions', () => {
  it('creates, lists, gets, changes and deletes a monitor, with an audit record for each change', async () => {
    const tenant = await tenantOf();
    const monitor = await createMonitor(tenant, { channels: [{ type: 'email' }, { type: 'webhook' }] });
    expect(monitor).toMatchObject({
      name: 'Failures by user',
      query: { view: 'spans', measures: [{ measure: 'errors', agg: 'sum' }], group_by: ['user_id'] },
      group_by: ['user_id'],
      threshold: { above: 2 },
      for_minutes: 0,
      channels: [{ type: 'email', to: [`${tenant.org}@example.com`] }, { type: 'webhook' }],
      severity: 'warning',
      enabled: true,
      state: 'no_data',
      evaluated_at: null,
    });
    const changed = await patch(tenant, monitor, { threshold: { below: 1 }, enabled: false });
    expect(changed).toMatchObject({ threshold: { below: 1 }, state: 'disabled', name: 'Failures by user' });
    expect((await tenant.get('/v1/monitors?state=disabled')).json?.['data']).toEqual([changed]);
    expect((await tenant.get('/v1/monitors?state=ok')).json?.['data']).toEqual([]);
    const removed = await tenant.call('DELETE', `/v1/monitors/${monitor.monitor_id}`);
    expect(shown(removed)).toEqual({ monitor_id: monitor.monitor_id, deleted: true });
    expect((await tenant.get(`/v1/monitors/${monitor.monitor_id}`)).json?.['code']).toBe('not_found');
    await eventually(async () => {
      const { json } = await tenant.get(`/orgs/${tenant.org}/audit-log`);
      const actions = (json?.['data'] as { action: string }[]).map(({ action }) => action);
      return ['monitor.create', 'monitor.update', 'monitor.delete'].every((action) => actions.includes(action));
    });
  });

  it('takes the dimension beside the query or in it, and ignores since', async () => {
    const tenant = await tenantOf();
    const query = { view: 'spans', measures: [{ measure: 'count' }], since: '2026-01-01T00:00:00Z' };
    const monitor = await createMonitor(tenant, { query: { ...query, group_by: ['model'] }, group_by: undefined });
    expect(monitor).toMatchObject({ group_by: ['model'], query: { measures: [{ measure: 'count', agg: 'sum' }] } });
    const moved = await patch(tenant, monitor, { group_by: [] });
    expect(moved).toMatchObject({ group_by: [], query: { group_by: [] } });
  });

  it.each<[string, Record<string, unknown>, string]>([
    [
      'two measures',
      { query: { view: 'spans', measures: [{ measure: 'count' }, { measure: 'errors' }] } },
      'query.measures',
    ],
    [
      'granularity',
      { query: { view: 'spans', measures: [{ measure: 'count' }], granularity: 'hour' } },
      'query.granularity',
    ],
    ['an unknown measure', { query: { view: 'spans', measures: [{ measure: 'nonsense' }] } }, 'measures[0].measure'],
    ['the view usage', { query: { view: 'usage', measures: [{ measure: 'cost_usd' }] } }, 'query.view'],
    ['an unknown dimension', { group_by: ['nonsense'] }, 'group_by[0]'],
    ['two dimensions', { group_by: ['model', 'user_id'] }, 'group_by'],
    ['a window of 0 minutes', { window_minutes: 0 }, 'window_minutes'],
    ['a window beyond a day', { window_minutes: 1441 }, 'window_minutes'],
    ['a threshold without a limit', { threshold: {} }, 'threshold'],
    ['a threshold with both limits', { threshold: { above: 1, below: 2 } }, 'threshold'],
    ['an unknown channel', { channels: [{ type: 'slack' }] }, 'channels[0]'],
    [
      'an endpoint that does not exist',
      { channels: [{ type: 'webhook', webhook_id: 'wh_x' }] },
      'channels[0].webhook_id',
    ],
    ['an unknown field', { cron: '* * * * *' }, 'cron'],
  ])('rejects %s with 422 and names the field', async (_, fields, field) => {
    const tenant = await tenantOf();
    const { status, json } = await tenant.call('POST', '/v1/monitors', { body: failures(fields) });
    expect([status, json?.['code'], json?.['detail']]).toEqual([
      422,
      'invalid_request',
      expect.stringContaining(field),
    ]);
  });

  it('requires costs:read for a monitor of costs, and shows no monitor to another organization', async () => {
    const [tenant, other] = [await tenantOf(), await tenantOf()];
    const key = await tenant.keyOf('webhooks:write', 'traces:read');
    const query = { view: 'spans', measures: [{ measure: 'cost_usd' }] };
    const refused = await tenant.call('POST', '/v1/monitors', { headers: key, body: failures({ query }) });
    expect([refused.status, refused.json?.['detail']]).toEqual([403, expect.stringContaining('costs:read')]);
    const monitor = await createMonitor(tenant);
    expect((await other.get(`/v1/monitors/${monitor.monitor_id}`)).status).toBe(404);
    expect((await other.call('DELETE', `/v1/monitors/${monitor.monitor_id}`)).status).toBe(404);
    expect((await other.get('/v1/monitors')).json?.['data']).toEqual([]);
  });
});

describe('evaluation', () => {
  it('notifies endpoints and channels once for each change of a group', async () => {
    const tenant = await tenantOf();
    await endpoint(tenant, '/subscribed', ['monitor.alerting', 'monitor.resolved']);
    const named = await endpoint(tenant, '/named', ['agent.deprecated']);
    const monitor = await createMonitor(tenant, { channels: [{ type: 'webhook', webhook_id: named }] });
    await sendFailures(tenant, { ann: 4, bob: 1 });
    await evaluate(api);
    await evaluate(api);
    const alerting = await getMonitor(tenant, monitor);
    expect(alerting).toMatchObject({
      state: 'alerting',
      error: null,
      groups: [
        { group: { user_id: 'ann' }, state: 'alerting', value: 4 },
        { group: { user_id: 'bob' }, state: 'ok', value: 1 },
      ],
    });
    await patch(tenant, monitor, { threshold: { above: 10 } });
    await evaluate(api);
    await evaluate(api);
    expect(await getMonitor(tenant, monitor)).toMatchObject({ state: 'ok' });
    const expected = [
      {
        event: 'monitor.alerting',
        monitor_id: monitor.monitor_id,
        group: { user_id: 'ann' },
        value: 4,
        threshold: { above: 2 },
      },
      { event: 'monitor.resolved', monitor_id: monitor.monitor_id, group: { user_id: 'ann' }, value: 4, reason: 'ok' },
    ];
    expect(await told(tenant)).toMatchObject(expected);
    for (const path of ['/subscribed', '/named']) {
      await eventually(() => receiver.at(path).length >= 2, { what: `deliveries at ${path}` });
      expect(receiver.at(path).map(({ json }) => json['event'])).toEqual(['monitor.alerting', 'monitor.resolved']);
    }
  });

  it('resolves what a changed query, a disabled monitor and a deleted monitor had alerting', async () => {
    const tenant = await tenantOf();
    const made = [
      await createMonitor(tenant, { name: 'a' }),
      await createMonitor(tenant, { name: 'b' }),
      await createMonitor(tenant, { name: 'c' }),
    ] as const;
    await sendFailures(tenant, { ann: 4 });
    await evaluate(api);
    expect(await told(tenant)).toHaveLength(3);
    await patch(tenant, made[0], { group_by: ['name'], threshold: { above: 100 } });
    await patch(tenant, made[1], { enabled: false });
    await tenant.call('DELETE', `/v1/monitors/${made[2].monitor_id}`);
    await evaluate(api);
    await evaluate(api);
    const reasons = (await told(tenant)).slice(3).map(({ event, name, reason }) => [event, name, reason]);
    expect(reasons.sort()).toEqual([
      ['monitor.resolved', 'a', 'changed'],
      ['monitor.resolved', 'b', 'disabled'],
      ['monitor.resolved', 'c', 'deleted'],
    ]);
  });

  it('counts no rows as 0 where the measure is a sum, and as no data where it is not', async () => {
    const tenant = await tenantOf();
    const query = (measure: string) => ({ view: 'spans', measures: [{ measure }] });
    const silent = await createMonitor(tenant, { query: query('count'), group_by: [], threshold: { below: 1 } });
    const slow = await createMonitor(tenant, { query: query('error_rate'), group_by: [], threshold: { below: 1 } });
    await evaluate(api);
    expect(await getMonitor(tenant, silent)).toMatchObject({ state: 'alerting', groups: [{ group: {}, value: 0 }] });
    expect(await getMonitor(tenant, slow)).toMatchObject({ state: 'no_data', groups: [{ group: {}, value: null }] });
  });

  it('says why a monitor cannot be evaluated, and keeps it from alerting', async () => {
    const tenant = await tenantOf();
    const monitor = await createMonitor(tenant, { group_by: [], threshold: { below: 1 } });
    const kv = await api.log.bucket('monitors');
    const key = `${tenant.org}.${monitor.monitor_id}`;
    const record = (await kv.get(key))?.json<Record<string, unknown>>();
    // A version that has another catalog stored it.
    const query = { view: 'spans', measures: [{ measure: 'count', agg: 'median' }], filters: [] };
    await kv.put(key, JSON.stringify({ ...record, query }));
    await evaluate(api);
    await eventually(async () => (await getMonitor(tenant, monitor)).state === 'error');
    expect(await getMonitor(tenant, monitor)).toMatchObject({
      error: expect.stringContaining('median') as string,
      groups: [],
    });
    expect(await told(tenant)).toEqual([]);
  });

  it('notifies once for each change when the worker is killed between evaluations', async () => {
    const tenant = await tenantOf();
    const monitor = await createMonitor(tenant);
    await sendFailures(tenant, { ann: 4 });
    await evaluate(api);
    for (let kills = 0; kills < 2; kills += 1) {
      await service.killWorker();
      await service.startWorker();
      await evaluate(api);
    }
    await patch(tenant, monitor, { threshold: { above: 10 } });
    await service.killWorker();
    await service.startWorker();
    await evaluate(api);
    const ids = (await toldEvents(api.log, tenant.org)).filter(({ event }) => event.startsWith('monitor.'));
    expect(ids.map(({ event }) => event)).toEqual(['monitor.alerting', 'monitor.resolved']);
  });

  it('sends what a killed worker had stored and not sent', async () => {
    const tenant = await tenantOf();
    const monitor = await createMonitor(tenant);
    await sendFailures(tenant, { ann: 4 });
    await evaluate(api);
    const states = await api.log.bucket('monitor_states');
    const key = `${tenant.org}.${monitor.monitor_id}`;
    const state = (await states.get(key))?.json<Record<string, unknown>>();
    // The worker was killed after it stored the change and before it sent the notice.
    const notice = { event_id: 'evt_00000000000000ff', event: 'monitor.resolved', at_ms: Date.now() };
    const payload = {
      event: 'monitor.resolved',
      org_id: tenant.org,
      monitor_id: monitor.monitor_id,
      group: {},
      value: 1,
    };
    await states.put(key, JSON.stringify({ ...state, outbox: [{ ...notice, payload }] }));
    await evaluate(api);
    await evaluate(api);
    expect((await told(tenant)).map(({ event }) => event)).toEqual(['monitor.alerting', 'monitor.resolved']);
  });
});
