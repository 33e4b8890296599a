// Failing traces of an organization, so many that they open an incident, and one that succeeded.
import { eventually } from '../../support/wait.ts';

/** Failing traces within 15 minutes that open an incident. */
export const OPENING = 5;

interface Caller {
  org_id: string;
  data: <T>(method: string, path: string, body?: unknown) => Promise<T>;
}

interface Failing {
  incident_id: string;
  trace_ids: readonly string[];
}

let sent = 0;

/** Sends traces of one span each, and returns their ids. */
async function sendTraces(org: Caller, outcome: 'error' | 'success', count: number, more: object): Promise<string[]> {
  const events = Array.from({ length: count }, () => ({
    name: 'book',
    outcome,
    duration_ms: 10,
    attributes: { agent_id: 'booker', serial: ++sent, ...more },
  }));
  const { events: stored } = await org.data<{ events: { trace_id: string }[] }>(
    'POST',
    `/orgs/${org.org_id}/ingest/custom`,
    { events },
  );
  return stored.map(({ trace_id }) => trace_id);
}

/**
 * Opens an incident with traces that fail for one reason, after a trace that succeeded.
 * @param error error of the traces; `#` becomes a number that differs
 */
export async function openIncident(org: Caller, error: string, agent_id = 'booker'): Promise<Failing> {
  await sendTraces(org, 'success', 1, { agent_id });
  const trace_ids: string[] = [];
  for (let n = 0; n < OPENING; n += 1) {
    const error_message = error.replace('#', String(100 + n));
    trace_ids.push(...(await sendTraces(org, 'error', 1, { agent_id, error_message })));
  }
  let incident_id = '';
  await eventually(
    async () => {
      const query = new URLSearchParams({ status: 'open', agent_id });
      const [found] = await org.data<{ incident_id: string; trace_count: number }[]>('GET', `/v1/incidents?${query}`);
      incident_id = found?.incident_id ?? '';
      return found?.trace_count === OPENING;
    },
    { what: `an incident of ${agent_id}` },
  );
  return { incident_id, trace_ids };
}
