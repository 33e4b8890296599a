// What needs somebody: one line for each open incident, anomaly, judge under its threshold, eval that
// regressed, undelivered webhook event and grant that ends soon. Pure; each line has one link, to a
// page that exists.
import type { components } from '../../client/contract.d.ts';
import { count, exact, money, relativeTime } from '../../text/format.ts';
import { anomalyHref } from '../costs/anomaly_marks.ts';

export interface Need {
  key: string;
  kind: 'Incident' | 'Monitor' | 'Judge' | 'Anomaly' | 'Eval' | 'Webhooks' | 'Grant';
  tone: 'warning' | 'critical';
  text: string;
  detail: string;
  href: string;
  /** Destination of the link, for its tooltip. */
  action: string;
  at: string | null;
}

/** Where lines may lead. */
export interface Places {
  /** Path of the organization. */
  root: string;
  hasPage: (path: string) => boolean;
}

type Incident = components['schemas']['Incident'];
type Monitor = components['schemas']['Monitor'];
type Anomaly = components['schemas']['Anomaly'];
type Judge = components['schemas']['Judge'];
type Eval = components['schemas']['Eval'];
interface OwnGrant {
  grant_id: string;
  resource: { type: string; id: string };
  expires_at: string;
}

const DAY_MS = 86_400_000;
/** Anomalies and evals older than this are no news. */
const NEWS_MS = 3 * DAY_MS;
const GRANT_ENDS_MS = 7 * DAY_MS;
const ROUNDING = 1e-9;

const isNews = (at: string | null, now: number): boolean => at !== null && now - Date.parse(at) < NEWS_MS;

export function incidentNeeds(incidents: readonly Incident[], { root, hasPage }: Places): Need[] {
  return incidents.map((incident) => {
    const query = new URLSearchParams({ outcome: 'error,timeout', since: incident.opened_at });
    if (incident.agent_id !== null) query.set('agent_id', incident.agent_id);
    const page = hasPage('/incidents/:incident_id');
    return {
      key: incident.incident_id,
      kind: 'Incident',
      tone: incident.severity,
      text: incident.error,
      detail: `${incident.agent_id === null ? '' : `${incident.agent_id}, `}${count(incident.trace_count)} ${incident.trace_count === 1 ? 'trace' : 'traces'}`,
      href: page ? `${root}/incidents/${encodeURIComponent(incident.incident_id)}` : `${root}/traces?${query}`,
      action: page ? 'Open the incident' : 'Show its traces',
      at: incident.opened_at,
    };
  });
}

/** Returns the monitors that alert. */
export function monitorNeeds(monitors: readonly Monitor[], { root, hasPage }: Places): Need[] {
  if (!hasPage('/monitors/:monitor_id')) return [];
  return monitors.map(({ monitor_id, name, severity, groups, group_by }) => {
    const alerting = groups.filter(({ state }) => state === 'alerting');
    const since = alerting.map((group) => group.since).toSorted();
    return {
      key: monitor_id,
      kind: 'Monitor',
      tone: severity === 'critical' ? 'critical' : 'warning',
      text: name,
      detail: group_by.length === 0 ? '' : `${count(alerting.length)} of ${count(groups.length)} groups alert`,
      href: `${root}/monitors/${encodeURIComponent(monitor_id)}`,
      action: 'Open the monitor',
      at: since[0] ?? null,
    };
  });
}

export function anomalyNeeds(anomalies: readonly Anomaly[], { root }: Places, now: number): Need[] {
  return anomalies
    .filter(({ detected_at }) => isNews(detected_at, now))
    .map((anomaly) => ({
      key: anomaly.anomaly_id,
      kind: 'Anomaly',
      tone: 'warning',
      text: `${anomaly.date} cost ${money(anomaly.actual_usd)} instead of ${money(anomaly.expected_usd)}`,
      detail: [anomaly.attributed_to.agent_id, anomaly.attributed_to.model].filter((one) => one !== null).join(', '),
      href: anomalyHref(`${root}/traces`, anomaly),
      action: 'Show the traces of the day',
      at: anomaly.detected_at,
    }));
}

/**
 * Returns the enabled judges whose mean score of the last 24 hours is under their threshold.
 * @param means mean score and number of scores by judge
 */
export function judgeNeeds(
  judges: readonly Judge[],
  means: ReadonlyMap<string, { mean: number; scores: number }>,
  { root, hasPage }: Places,
): Need[] {
  return judges.flatMap((judge): Need[] => {
    const scored = means.get(judge.judge_id);
    const limit = judge.threshold.warn ?? judge.threshold.pass;
    if (!judge.enabled || scored === undefined || scored.mean >= limit) return [];
    const page = hasPage('/judges/:judge_id');
    return [
      {
        key: judge.judge_id,
        kind: 'Judge',
        tone: 'warning',
        text: `${judge.name} scores ${exact(round(scored.mean))} on average, under its threshold of ${exact(limit)}`,
        detail: `${count(scored.scores)} ${scored.scores === 1 ? 'score' : 'scores'} in 24 hours`,
        href: page
          ? `${root}/judges/${encodeURIComponent(judge.judge_id)}`
          : `${root}/traces?${new URLSearchParams({ judge_id: judge.judge_id, verdict: 'fail' })}`,
        action: page ? 'Open the judge' : 'Show the traces that fail',
        at: null,
      },
    ];
  });
}

/**
 * Returns the newest complete evals whose mean fell against the eval of the same judge and subject
 * before, by at least the drop that the policy of the organization names.
 */
export function evalNeeds(evals: readonly Eval[], drop: number, { root, hasPage }: Places, now: number): Need[] {
  if (!hasPage('/evals/:eval_id')) return [];
  const done = evals
    .filter(({ status, ended_at, stats }) => status === 'complete' && ended_at !== null && stats?.mean_score != null)
    .toSorted((a, b) => ((a.ended_at ?? '') < (b.ended_at ?? '') ? 1 : -1));
  const seen = new Set<string>();
  return done.flatMap((one, at): Need[] => {
    const subject = JSON.stringify([one.judge_id, one.dataset_id ?? null]);
    const before = done
      .slice(at + 1)
      .find((other) => JSON.stringify([other.judge_id, other.dataset_id ?? null]) === subject);
    const first = !seen.has(subject);
    seen.add(subject);
    const [mean, previous] = [one.stats?.mean_score ?? 0, before?.stats?.mean_score ?? 0];
    const fell = previous - mean;
    if (!first || before === undefined || !isNews(one.ended_at, now) || fell <= ROUNDING || fell < drop - ROUNDING)
      return [];
    const compare = hasPage('/evals/compare/:a/:b');
    return [
      {
        key: one.eval_id,
        kind: 'Eval',
        tone: 'warning',
        text: `The mean score of an eval fell from ${exact(round(previous))} to ${exact(round(mean))}`,
        detail: one.prompt_version ?? one.dataset_id ?? one.judge_id,
        href: compare
          ? `${root}/evals/compare/${encodeURIComponent(before.eval_id)}/${encodeURIComponent(one.eval_id)}`
          : `${root}/evals/${encodeURIComponent(one.eval_id)}`,
        action: compare ? 'Compare both evals' : 'Open the eval',
        at: one.ended_at,
      },
    ];
  });
}

/** Returns the line of webhook events that could not be delivered; none without such events. */
export function deadLetterNeeds(total: number, { root, hasPage }: Places): Need[] {
  if (total === 0 || !hasPage('/webhooks/:id')) return [];
  return [
    {
      key: 'dead-letters',
      kind: 'Webhooks',
      tone: 'warning',
      text: `${count(total)} ${total === 1 ? 'event was' : 'events were'} not delivered`,
      detail: '',
      href: `${root}/webhooks/dead-letters`,
      action: 'Show the dead letters',
      at: null,
    },
  ];
}

/** Returns the person's own grants that end within 7 days. */
export function grantNeeds(grants: readonly OwnGrant[], { root, hasPage }: Places, now: number): Need[] {
  const pages: Readonly<Record<string, string>> = {
    trace: '/traces',
    agent: '/agents',
    judge: '/judges',
    dataset: '/datasets',
  };
  return grants.flatMap(({ grant_id, resource: { type, id }, expires_at }): Need[] => {
    const left = Date.parse(expires_at) - now;
    const path = pages[type];
    if (left <= 0 || left > GRANT_ENDS_MS || path === undefined || !hasPage(`${path}/:${type}_id`)) return [];
    return [
      {
        key: grant_id,
        kind: 'Grant',
        tone: 'warning',
        text: `Your access to the ${type} ${id} ends ${relativeTime(Date.parse(expires_at), now)}`,
        detail: '',
        href: `${root}${path}/${encodeURIComponent(id)}`,
        action: `Open the ${type}`,
        at: null,
      },
    ];
  });
}

const round = (value: number): number => Math.round(value * 1000) / 1000;
