// An organization with failing traces, and its incidents as the API returns them. Each call of
// `aFailingTenant` creates a new organization.
import type { ServiceEvent } from '../../../schemas/codec.ts';
import { expect } from 'vitest';
import { EVENTS_STREAM } from '../../../schemas/streams.ts';
import { toldEvents } from '../../support/told.ts';
import { eventually } from '../../support/wait.ts';
import { type Answer, call, type TestApi } from '../api/an_api.ts';
import { type Account, anAccount, asOperator, Tenant } from '../a_tenant.ts';

export const MINUTE_MS = 60_000;

interface Sent {
  error?: unknown;
  agent?: string;
  /** Minutes before now at which the trace ended. */
  ago?: number;
  outcome?: string;
}

export interface Incident {
  incident_id: string;
  cluster_id: string;
  status: string;
  trace_count: number;
  [field: string]: unknown;
}

/** Returns traces that fail for one reason. */
export const failures = (count: number, more: Partial<Sent> = {}): Sent[] =>
  Array.from({ length: count }, (_, i) => ({
    error: `no seat on flight HAT0${i} for "passenger ${i}", code ${1000 + i}`,
    ...more,
  }));

/** Runs the incidents job with its clock this many minutes ahead. */
export async function runJob(api: TestApi, minutes: number): Promise<void> {
  const body = { now: new Date(Date.now() + minutes * MINUTE_MS).toISOString() };
  // The scheduled run may be in progress.
  await eventually(
    async () => (await call(api, 'POST', '/admin/jobs/incidents/run', { headers: asOperator, body })).status === 200,
    { what: 'the job' },
  );
}

export class FailingTenant extends Tenant {
  readonly #log: TestApi['log'];
  #sent = 0;

  constructor(api: TestApi, account: Account) {
    super({ api }, account);
    this.#log = api.log;
  }

  /** Sends traces of one span each, and resolves with their ids. */
  async send(traces: readonly Sent[]): Promise<string[]> {
    const events = traces.map(({ error, agent = 'booker', ago, outcome = 'error' }) => {
      const ended = ago === undefined ? {} : { ended_at: new Date(Date.now() - ago * MINUTE_MS).toISOString() };
      return {
        name: 'book',
        outcome,
        duration_ms: 10,
        ...ended,
        attributes: { agent_id: agent, serial: ++this.#sent, ...(error === undefined ? {} : { error_message: error }) },
      };
    });
    const answer = await this.ingest('custom', { events });
    return (answer.json?.['data'] as { events: { trace_id: string }[] }).events.map(({ trace_id }) => trace_id);
  }

  async incidents(query = ''): Promise<Incident[]> {
    const answer = await this.get(`/v1/incidents${query}`);
    expect(answer.status).toBe(200);
    return answer.json?.['data'] as Incident[];
  }

  /** Waits for an incident of this many traces, the only one with its status. */
  async theIncident(traces: number, status = 'open'): Promise<Incident> {
    await eventually(async () => (await this.incidents(`?status=${status}`))[0]?.trace_count === traces, {
      what: `an incident of ${traces} traces`,
    });
    const [found, ...others] = await this.incidents(`?status=${status}`);
    expect(others).toEqual([]);
    if (found === undefined) throw new Error('there was one');
    return found;
  }

  resolve(incident_id: string, headers = this.key): Promise<Answer> {
    return this.call('POST', `/v1/incidents/${incident_id}/resolve`, { headers });
  }

  async #eventsOf(event: string): Promise<ServiceEvent[]> {
    return (await toldEvents(this.#log, this.org)).filter((one) => one.event === event);
  }

  /** Returns the number of complete traces of this organization. */
  async completed(): Promise<number> {
    return new Set((await this.#eventsOf('trace.completed')).map(({ event_id }) => event_id)).size;
  }

  /** Resolves once this many traces are complete and every event about them is counted. */
  async counted(traces: number): Promise<void> {
    await eventually(async () => (await this.completed()) === traces, { what: `${traces} complete traces` });
    await eventually(
      async () => {
        const info = await this.#log.jsm.consumers.info(EVENTS_STREAM, 'incidents');
        return info.num_pending + info.num_ack_pending === 0;
      },
      { what: 'everything counted' },
    );
  }

  /** Waits for this many platform events of a kind, and returns their payloads. */
  async toldOf(event: string, events: number): Promise<Record<string, unknown>[]> {
    await eventually(async () => (await this.#eventsOf(event)).length >= events, { what: `${events} ${event}` });
    const found = await this.#eventsOf(event);
    expect(new Set(found.map(({ event_id }) => event_id)).size).toBe(events);
    return found.map(({ payload }) => JSON.parse(payload) as Record<string, unknown>);
  }
}

/** Creates an organization without traces. */
export async function aFailingTenant(api: TestApi): Promise<FailingTenant> {
  return new FailingTenant(api, await anAccount({ api }));
}
