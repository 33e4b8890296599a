// Tests of agent activity on a real ClickHouse: the rows that a landing writes, last_seen_at in the
// registry's lists, and how the nightly job deprecates silent agents.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { AgentActivity, type ActivityOptions } from '../../../api/control/agents/activity.ts';
import { AgentActivity as HeardAgents, type AgentHeard } from '../../../pipeline/landing/agent_activity.ts';
import { Fences } from '../../../pipeline/landing/fences.ts';
import { ClickHouseHistoryStore } from '../../../pipeline/landing/history_store.ts';
import { ClickHouseLandingStore } from '../../../pipeline/landing/landing_store.ts';
import type { Cells } from '../../../sql/client/native_block.ts';
import { usageCells } from '../../../pipeline/landing/row_encoders.ts';
import { USAGE_EVENTS } from '../../../sql/stores/landing_tables.ts';
import type { PartitionRecord } from '../../../schemas/records/partition.ts';
import { agentKey, type AgentRecord } from '../../../schemas/records/agent.ts';
import { createClickHouse, type ClickHouse } from '../../../sql/client/client.ts';
import { migrate } from '../../../sql/client/migrate.ts';
import { anEvent } from '../../support/spans.ts';
import { createTestDatabase, startTestEngine, type TestDatabase, type TestEngine } from '../../support/clickhouse.ts';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import { logged, openTestLog, startWorker, type TestLog, type TestWorker } from '../../support/pipeline.ts';
import { usagePiece } from '../../support/usage_piece.ts';
import { eventually } from '../../support/wait.ts';
import { ADMIN_TOKEN, call, ORG, startTestApi, type TestApi } from '../api/an_api.ts';

/** A registry that holds only the keys of agents and lets a test add agents. */
class Registry {
  readonly #agents = new Map<string, { key: string; org_id: string; agent_id: string }>();
  readonly #listeners = new Set<(key: string, agent: AgentRecord) => void>();
  add(org_id: string, agent_id: string): void {
    const key = agentKey(org_id, agent_id);
    this.#agents.set(key, { key, org_id, agent_id });
    for (const listener of this.#listeners) listener(key, { org_id, agent_id } as AgentRecord);
  }
  all(): IterableIterator<{ key: string; org_id: string; agent_id: string }> {
    return this.#agents.values();
  }
  has(key: string): boolean {
    return this.#agents.has(key);
  }
  onChange(listener: (key: string, agent: AgentRecord) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
  onRemoved(): () => void {
    return () => undefined;
  }
}

describe('agent activity', () => {
  let database: TestDatabase;
  let clickhouse: ClickHouse;
  let fences: Fences;
  let store: ClickHouseLandingStore;
  let registry: Registry;
  const activities: AgentActivity[] = [];
  let seq = 0;

  beforeAll(async () => {
    database = await createTestDatabase();
    clickhouse = createClickHouse({ url: database.url });
    await migrate(clickhouse, {});
    fences = new Fences(clickhouse, 'w1');
    store = new ClickHouseLandingStore(clickhouse, fences);
    await fences.raise([
      [0, 1],
      [1, 1],
    ]);
    registry = new Registry();
  });
  afterAll(async () => {
    for (const activity of activities) activity.close();
    await clickhouse.close();
    await database.drop();
  });

  /** Lands usage as a worker does. Rejects if a newer fence refuses it. */
  const land = async (
    rows: { org_id?: string; agent_id: string; at: number; partition?: number }[],
    owned: [number, number][] = [
      [0, 1],
      [1, 1],
    ],
  ) => {
    seq += 1;
    const { usage } = anEvent(1);
    const lines = rows.map(({ org_id = 'org_a', agent_id, at, partition = 0 }) =>
      usageCells({ ...usage, org_id, agent_id, last_received_at: at, hour: 0 }, partition, seq),
    );
    await store.insert(USAGE_EVENTS, usagePiece(lines), owned, `q${seq}-${database.database}`);
    const activity = new HeardAgents((heard) => store.writeActivity(heard));
    activity.note(
      rows.map(({ org_id = 'org_a', agent_id, at }) => ({
        usage: { ...usage, org_id, agent_id, last_received_at: at },
      })),
    );
    await activity.write();
  };
  const anActivity = (over: Partial<ActivityOptions> = {}): AgentActivity => {
    const activity = new AgentActivity({ clickhouse, agents: registry, onProblem: () => undefined, ...over });
    activities.push(activity);
    return activity;
  };

  it('a landing that a newer fence refuses reports no activity', async () => {
    await land([{ agent_id: '', at: 1 }]);
    await land([
      { agent_id: 'counted', at: 1 },
      { agent_id: 'counted', at: 2 },
      { agent_id: '', at: 2 },
    ]);
    const fencedOff = [
      { agent_id: 'counted', at: 9 },
      { agent_id: 'counted', at: 9, partition: 1 },
      { agent_id: 'other', at: 9, partition: 1 },
    ];
    await fences.raise([[1, 2]]);
    await expect(land(fencedOff)).rejects.toThrow('landed_by_owner');
    await fences.raise([[1, 3]]);
    await land(fencedOff, [
      [0, 1],
      [1, 3],
    ]);
    await fences.raise([[1, 4]]);
  });

  it("an agent's last activity is the latest time, in whatever order and however often landings report it", async () => {
    registry.add('org_a', 'a');
    const activity = anActivity();
    await activity.poll();
    expect(activity.lastSeen('org_a', 'a')).toBe(0);
    await land([{ agent_id: 'a', at: 5000 }]);
    await activity.poll();
    expect(activity.lastSeen('org_a', 'a')).toBe(5000);
    // A lagging partition lands an older receipt late. A newer receipt then lands twice, as after a
    // crash.
    await land([{ agent_id: 'a', at: 3000 }]);
    await land([{ agent_id: 'a', at: 7000 }]);
    await land([{ agent_id: 'a', at: 7000 }]);
    await activity.poll();
    expect(activity.lastSeen('org_a', 'a')).toBe(7000);
    expect(activity.lastSeen('org_b', 'a')).toBe(0);
  });

  it('the next owner of a partition writes the activity that the previous one landed and did not live to write', async () => {
    const { usage } = anEvent(1);
    const line = (agent_id: string, at: number, logSeq: number): Cells =>
      usageCells({ ...usage, org_id: 'org_a', agent_id, last_received_at: at, hour: 0 }, 2, logSeq);
    await fences.raise([[2, 1]]);
    await store.insert(USAGE_EVENTS, usagePiece([line('settled', 100, 500)]), [[2, 1]], `settled-${database.database}`);
    await store.insert(
      USAGE_EVENTS,
      usagePiece([line('orphan', 200, 501), line('orphan', 300, 502)]),
      [[2, 1]],
      `orphan-${database.database}`,
    );
    const record = {
      partition: 2,
      epoch: 2,
      owner: null,
      checkpoint: 500,
      completed_through: 500,
    } as unknown as PartitionRecord;
    await new ClickHouseHistoryStore(clickhouse).histories([record], { logBase: 0, windowMs: 1000, tail: false });
    // The previous owner wrote the activity of all events up to the checkpoint, so only later
    // events add rows.
    const seen = `SELECT agent_id, toUnixTimestamp64Milli(max(last_seen_at)) FROM agent_activity WHERE agent_id IN ('settled', 'orphan') GROUP BY agent_id FORMAT TSV`;
    expect((await database.run(seen)).trim()).toBe('orphan\t300');
  });

  it('activity that could not be written is written with the next one, only the latest of each agent', async () => {
    const { usage } = anEvent(1);
    const written: (readonly AgentHeard[])[] = [];
    let away = true;
    const activity = new HeardAgents((heard) => {
      if (away) return Promise.reject(new Error('away'));
      written.push(heard);
      return Promise.resolve();
    });
    const note = (agent_id: string, at: number): void => {
      activity.note([{ usage: { ...usage, org_id: 'org_a', agent_id, last_received_at: at } }]);
    };
    note('x', 5);
    note('y', 5);
    note('', 5);
    const failing = activity.write();
    note('x', 9);
    note('y', 1);
    await expect(failing).rejects.toThrow('away');
    away = false;
    await activity.write();
    await activity.write();
    expect(written.map((heard) => heard.map(({ agent_id, last_seen_at }) => [agent_id, last_seen_at]).sort())).toEqual([
      [
        ['x', 9],
        ['y', 5],
      ],
    ]);
  });

  it('a restarted worker knows the activity from before, also of an agent that sent events before it registered', async () => {
    await land([{ agent_id: 'early', at: 4000 }]);
    const activity = anActivity();
    await activity.poll();
    expect([activity.lastSeen('org_a', 'a'), activity.lastSeen('org_a', 'early')]).toEqual([7000, 0]);
    registry.add('org_a', 'early');
    await activity.poll();
    expect(activity.lastSeen('org_a', 'early')).toBe(4000);
  });

  it('looks up more agents than one read can take, with the longest ids', async () => {
    const ids = Array.from({ length: 2010 }, (_, i) => `${'漢'.repeat(120)}${String(i).padStart(6, '0')}`);
    for (const id of ids) registry.add('o'.repeat(128), id);
    await land(ids.map((agent_id, i) => ({ org_id: 'o'.repeat(128), agent_id, at: 1000 + i })));
    const activity = anActivity();
    await activity.poll();
    expect(ids.map((id) => activity.lastSeen('o'.repeat(128), id))).toEqual(ids.map((_, i) => 1000 + i));
  });

  it('keeps known activity while the store is away, logs that once, and continues when it is back', async () => {
    const engine: TestEngine = await startTestEngine();
    const own = createClickHouse({ url: engine.url });
    try {
      await migrate(own, {});
      const write = (at: number) =>
        own.execute({
          name: 'test',
          sql: 'INSERT INTO agent_activity (org_id, agent_id, last_seen_at, landed_at) SELECT {o:String}, {a:String}, fromUnixTimestamp64Milli({at:Int64}), now64(3)',
          params: { o: 'org_a', a: 'a', at },
          timeoutMs: 5000,
        });
      await write(9000);
      const problems: string[] = [];
      const activity = anActivity({ clickhouse: own, onProblem: (problem) => problems.push(problem) });
      await activity.poll();
      await engine.kill();
      await activity.poll();
      await activity.poll();
      expect([activity.lastSeen('org_a', 'a'), problems.length]).toEqual([9000, 1]);
      await engine.start();
      await eventually(() => write(9500).then(() => true));
      await activity.poll();
      expect(activity.lastSeen('org_a', 'a')).toBe(9500);
    } finally {
      await own.close();
      await engine.remove();
    }
  });
});

describe('the whole way', () => {
  let database: TestDatabase;
  let nats: TestNats;
  let log: TestLog;
  let worker: TestWorker;
  let api: TestApi;
  const AGENTS = `/orgs/${ORG}/agents`;
  const DAY = 86_400_000;
  const operator = { Authorization: `Bearer ${ADMIN_TOKEN}` };

  beforeAll(async () => {
    database = await createTestDatabase();
    nats = await startTestNats();
    log = await openTestLog(nats.url);
    worker = startWorker({ natsUrl: nats.url, clickhouseUrl: database.url });
    await worker.ready;
    api = await startTestApi({ natsUrl: nats.url, clickhouseUrl: database.url });
  });
  afterAll(async () => {
    worker.kill('SIGKILL');
    await worker.exited;
    await api.close();
    await log.close();
    await nats.remove();
    await database.drop();
  });

  const register = async (agent_id: string): Promise<number> => {
    const made = await call(api, 'POST', `${AGENTS}/register-tokens`);
    const { register_token } = made.json?.['data'] as { register_token: string };
    return (await call(api, 'POST', `${AGENTS}/register`, { body: { agent_id, name: agent_id, register_token } }))
      .status;
  };
  const row = async (agent_id: string): Promise<Record<string, unknown>> =>
    (await call(api, 'GET', `${AGENTS}/${agent_id}`)).json?.['data'] as Record<string, unknown>;
  const hear = async (agent_id: string): Promise<number> => {
    const event = logged(
      'custom',
      { name: 'step', outcome: 'success', duration_ms: 1, attributes: { agent_id, n: Math.random() } },
      { org_id: ORG },
    );
    await log.publish([event], () => 0);
    return event.received_at;
  };
  const drift = (now?: number) =>
    call(api, 'POST', '/admin/jobs/agent-drift/run', {
      body: now === undefined ? {} : { now: new Date(now).toISOString() },
      headers: { ...operator, 'X-Org-Api-Key': undefined },
    });
  const counts = async (now?: number): Promise<unknown> => {
    const answer = await drift(now);
    expect([answer.status, answer.text]).toEqual([200, expect.stringContaining('"result"') as string]);
    return (answer.json?.['data'] as Record<string, unknown>)['result'];
  };

  it('an event sets last_seen_at of its agent, and silence deprecates the agent until it sends another', async () => {
    expect(await register('quiet')).toBe(201);
    expect(await register('busy')).toBe(201);
    expect(await row('busy')).toMatchObject({ last_seen_at: null, status: 'registered' });
    const heard = await hear('busy');
    await eventually(async () => (await row('busy'))['last_seen_at'] === new Date(heard).toISOString(), {
      what: 'last_seen_at',
    });
    expect(await row('busy')).toMatchObject({ deprecates_at: new Date(heard + 90 * DAY).toISOString() });
    const unknown = async (query = ''): Promise<unknown> =>
      (await call(api, 'GET', `/orgs/${ORG}/unregistered-agents${query}`)).json?.['data'];
    const stranger = await hear('stranger');
    await eventually(async () => ((await unknown()) as unknown[]).length === 1, { what: 'the stranger' });
    expect(await unknown('?days=90')).toEqual([
      { agent_id: 'stranger', last_seen_at: new Date(stranger).toISOString() },
    ]);
    expect((await call(api, 'GET', `/orgs/${ORG}/unregistered-agents?days=91`)).status).toBe(422);
    expect(await counts()).toEqual({ checked: 0, deprecated: 0, revived: 0 });
    // The job runs with a clock at which one agent was last seen 89 days ago and the other was
    // registered 91 days ago.
    const kv = await api.log.bucket('agents');
    const old = new Date(heard - 2 * DAY).toISOString();
    const entry = await kv.get(agentKey(ORG, 'quiet'));
    await kv.update(
      agentKey(ORG, 'quiet'),
      JSON.stringify({ ...entry?.json<AgentRecord>(), registered_at: old, updated_at: old }),
      entry?.revision ?? 0,
    );
    expect(await counts(heard + 89 * DAY)).toEqual({ checked: 1, deprecated: 1, revived: 0 });
    await eventually(async () => (await row('quiet'))['status'] === 'deprecated');
    expect(await row('busy')).toMatchObject({ status: 'registered' });
    expect(Date.parse(String((await row('quiet'))['deprecated_at']))).toBeLessThanOrEqual(Date.now());
    expect(await counts(heard + 89 * DAY)).toEqual({ checked: 1, deprecated: 0, revived: 0 });

    const list = await call(api, 'GET', `/orgs/${ORG}/audit-log?action=agent.deprecate`);
    await eventually(async () => {
      const answer = await call(api, 'GET', `/orgs/${ORG}/audit-log?action=agent.deprecate`);
      return (answer.json?.['data'] as unknown[]).length === 1;
    });
    const [record] = (await call(api, 'GET', `/orgs/${ORG}/audit-log?action=agent.deprecate`)).json?.[
      'data'
    ] as unknown[];
    expect([list.status, record]).toEqual([
      200,
      expect.objectContaining({
        actor: { type: 'system', id: 'agent-drift' },
        target: { type: 'agent', id: 'quiet' },
        changes: expect.objectContaining({ drift_type: 'inactive', reason: 'no events in 90 days' }) as unknown,
      }),
    ]);

    await hear('quiet');
    await eventually(async () => (await row('quiet'))['status'] === 'registered', { what: 'the agent to be back' });
    expect(await row('quiet')).toMatchObject({ deprecated_at: null });
    expect(await counts()).toEqual({ checked: 1, deprecated: 0, revived: 1 });
    expect((await kv.get(agentKey(ORG, 'quiet')))?.json()).toMatchObject({ deprecated_at: null });
  });

  it("registering ends an agent's deprecation", async () => {
    expect(await register('back')).toBe(201);
    expect(await counts(Date.now() + 91 * DAY)).toMatchObject({ deprecated: 3 });
    await eventually(async () => (await row('back'))['status'] === 'deprecated');
    expect((await call(api, 'POST', `${AGENTS}/register`, { body: { agent_id: 'back', name: 'back' } })).status).toBe(
      200,
    );
    expect(await row('back')).toMatchObject({ status: 'registered', deprecated_at: null });
  });

  it('an unknown job is 404, an invalid instant 422, an API key 403', async () => {
    const run = (name: string, body: unknown, headers: Record<string, string | undefined>) =>
      call(api, 'POST', `/admin/jobs/${name}/run`, { body, headers });
    const asOperator = { ...operator, 'X-Org-Api-Key': undefined };
    expect((await run('none', {}, asOperator)).json).toMatchObject({ code: 'job_not_found' });
    expect((await run('agent-drift', { now: 'yesterday' }, asOperator)).json).toMatchObject({
      code: 'invalid_request',
      detail: expect.stringMatching(/^now: /) as string,
    });
    expect((await run('agent-drift', {}, {})).json).toMatchObject({ code: 'forbidden' });
  });

  it('a job without a running worker is answered upstream_unavailable', async () => {
    worker.kill('SIGTERM');
    await worker.exited;
    const answer = await drift();
    expect([answer.status, answer.json?.['code']]).toEqual([502, 'upstream_unavailable']);
    expect(answer.json?.['detail']).toContain('No pipeline worker');
  });
});
