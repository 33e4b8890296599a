// A record of the audit log in words: its changes, and the page of what it names. Pure.

/** A changed field with its value before and after; `from` is undefined where the record has none. */
interface Change {
  field: string;
  from: unknown;
  to: unknown;
}

/** Returns the changes of a record: `{from, to}` of the fields that were changed, and the plain values of others. */
export function changesOf({ changes }: { changes: Readonly<Record<string, unknown>> }): Change[] {
  return Object.entries(changes).map(([field, value]) => {
    const isPair = typeof value === 'object' && value !== null && 'from' in value && 'to' in value;
    return isPair ? { field, from: value.from, to: value.to } : { field, from: undefined, to: value };
  });
}

/** Returns a value in one text: a text as it is, anything else as JSON. */
export const valueWords = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value));

const PAGES: Readonly<Record<string, string>> = {
  agent: '/agents/',
  webhook: '/webhooks/',
  judge: '/judges/',
  eval: '/evals/',
  dataset: '/datasets/',
  prompt: '/prompts/',
  trace: '/traces/',
  incident: '/incidents/',
  job: '/jobs/',
  annotation_queue: '/annotate/',
  monitor: '/monitors/',
  view: '/traces?view=',
};
/** Things that stand on a page with others of their kind. */
const SECTIONS: Readonly<Record<string, string>> = {
  org: '/settings/plan',
  member: '/settings/members',
  transfer: '/settings/members',
  api_key: '/settings/keys',
  grant: '/settings/grants',
  policy: '/settings/policy',
  pii_policy: '/settings/privacy',
  retention: '/settings/retention',
  register_token: '/agents',
  budget: '/costs/budgets',
  alert_config: '/costs/budgets',
  prices: '/costs/prices',
  anomaly_config: '/costs/anomalies',
};
const JOB_ID = /^job_[0-9a-f]{16}$/;

interface Named {
  target: { type: string; id: string };
  changes: Readonly<Record<string, unknown>>;
}

/**
 * Returns the page of what a record names, below /o/{org_id}; null where it has none: scheduled jobs, analysts and
 * dead letters are the operator's, and a session is nobody's page.
 */
export function targetPath({ target: { type, id }, changes }: Named): string | null {
  const section = SECTIONS[type];
  if (section !== undefined) return section;
  if (type === 'score') {
    const { trace_id } = changes;
    return typeof trace_id === 'string' ? `/traces/${encodeURIComponent(trace_id)}` : null;
  }
  const page = PAGES[type];
  // Scheduled jobs are targets too, by their name.
  if (page === undefined || id === '' || (type === 'job' && !JOB_ID.test(id))) return null;
  // A version of a prompt is name@version.
  const named = type === 'prompt' && id.includes('@') ? id.slice(0, id.lastIndexOf('@')) : id;
  return page + encodeURIComponent(named);
}
