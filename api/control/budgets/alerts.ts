// Reads, sets and tests the alert settings of a budget. The webhook's secret is generated here,
// returned once and stored sealed.
import { randomBytes, randomUUID } from 'node:crypto';
import type { Sealer } from '../../../ops/platform/sealing.ts';
import {
  type AlertEvent,
  type AlertPlace,
  eventsOfAlert,
  mailOfAlert,
} from '../../../pipeline/domain/budgets/alert_events.ts';
import type { DueAlert } from '../../../pipeline/domain/budgets/alerts.ts';
import type { Period } from '../../../pipeline/domain/budgets/period.ts';
import { webhookUrlProblem } from '../../../pipeline/domain/webhooks/url.ts';
import type { Mail } from '../../../schemas/codec.ts';
import {
  type AlertConfig,
  alertSealContext,
  type AlertThreshold,
  type BudgetRecord,
} from '../../../schemas/records/budget.ts';
import { ApiError } from '../../http/errors.ts';
import { changeRecord } from './budgets.ts';
import type { Alerts, AlertsBody } from './schema.ts';
import type { BudgetStore } from './store.ts';

const SECRET_BYTES = 24;
/** Threshold of a test alert if none is configured. */
const TEST_THRESHOLD: AlertThreshold = { resource: 'tokens', percent: 50, severity: 'info' };

export interface AlertsDeps {
  budgets: BudgetStore;
  sealer: Sealer;
  now: () => number;
  periodOf: (org_id: string) => Period;
  /** Returns the name and the owner's address of an organization, or null. */
  ownerOf: (org_id: string) => { name: string; email: string } | null;
  /** Resolves when the mail is queued. */
  mail: (mail: Mail) => Promise<void>;
  /** Resolves when the delivery is queued. */
  deliver: (org_id: string, alert: AlertEvent) => Promise<void>;
  /** True if webhooks may go to addresses of this machine. */
  development: boolean;
}

/** Returns the alert settings of an organization; empty lists before the first setting. */
export function readAlerts({ budgets }: Pick<AlertsDeps, 'budgets'>, org_id: string): Alerts {
  const record = budgets.get(org_id);
  return shown(record?.alerts ?? null, record?.updated_at ?? null);
}

const shown = (alerts: AlertConfig | null, updated_at: string | null): Alerts => ({
  channels: alerts?.channels ?? [],
  thresholds: alerts?.thresholds ?? [],
  webhook_url: alerts?.webhook_url ?? null,
  updated_at: alerts === null ? null : updated_at,
});

/**
 * Sets the alert settings of an organization. A new webhook address gets a new secret, which only
 * this response shows.
 *
 * @throws ApiError invalid_threshold, invalid_request, upstream_unavailable
 */
export async function putAlerts(
  deps: AlertsDeps,
  org_id: string,
  body: AlertsBody,
): Promise<{ before: Alerts; after: Alerts & { secret?: string } }> {
  for (const [index, { percent }] of body.thresholds.entries()) {
    if (!(percent > 0 && percent < 100))
      throw new ApiError('invalid_threshold', `thresholds[${index}].percent: must be a number above 0 and below 100`);
  }
  const webhook_url = body.webhook_url ?? null;
  const problem = webhook_url === null ? null : webhookUrlProblem(webhook_url, { development: deps.development });
  if (problem !== null) throw new ApiError('invalid_request', `webhook_url: ${problem}`);
  if (webhook_url === null && body.channels.includes('webhook'))
    throw new ApiError('invalid_request', 'webhook_url: is required for the channel webhook');
  const made = `whsec_${randomBytes(SECRET_BYTES).toString('base64url')}`;
  const secret = { fresh: false };
  // The last call belongs to the write that succeeded.
  const former: { record: BudgetRecord | null } = { record: null };
  const record = await changeRecord(deps, org_id, (before) => {
    former.record = before;
    const kept = before.alerts?.webhook_url === webhook_url ? before.alerts.sealed_secret : null;
    secret.fresh = webhook_url !== null && kept === null;
    const sealed_secret = webhook_url === null ? null : (kept ?? deps.sealer.seal(made, alertSealContext(org_id)));
    return {
      ...before,
      alerts: { channels: [...new Set(body.channels)], thresholds: body.thresholds, webhook_url, sealed_secret },
    };
  });
  const before = shown(former.record?.alerts ?? null, former.record?.updated_at ?? null);
  const after = shown(record.alerts, record.updated_at);
  return { before, after: secret.fresh ? { ...after, secret: made } : after };
}

/**
 * Sends a test alert through every channel of the organization. @returns the event and the channels
 * used
 */
export async function testAlerts(
  deps: AlertsDeps,
  org_id: string,
): Promise<{ event_id: string; sent: AlertConfig['channels'] }> {
  const record = deps.budgets.get(org_id);
  const alerts = record?.alerts ?? null;
  if (record === null || alerts === null || alerts.channels.length === 0)
    throw new ApiError('conflict', 'The organization has no alert channel. Set one first.');
  const org = deps.ownerOf(org_id);
  const place: AlertPlace = {
    org_id,
    org_name: org?.name ?? org_id,
    period_start: new Date(deps.periodOf(org_id).start).toISOString(),
  };
  const threshold = alerts.thresholds[0] ?? TEST_THRESHOLD;
  const limits = record[threshold.resource];
  const alert: DueAlert = {
    ...threshold,
    // Unique, since each test is an alert of its own.
    key: `test:${randomUUID()}`,
    kind: 'threshold',
    cause: 'cumulative',
    agent_id: null,
    used: 0,
    projected: 0,
    limits,
  };
  const breach = eventsOfAlert(alert, place).find(({ event }) => event === 'budget.threshold_breach');
  if (breach === undefined) throw new Error('an alert has no webhook event');
  const sent: AlertConfig['channels'] = [];
  try {
    if (alerts.channels.includes('email') && org !== null) {
      const mail = mailOfAlert(alert, place);
      await deps.mail({
        ...mail,
        subject: `[test] ${mail.subject}`,
        org_id,
        to: org.email,
        secret: '',
        created_at: deps.now(),
      });
      sent.push('email');
    }
    if (alerts.channels.includes('webhook')) {
      await deps.deliver(org_id, { ...breach, payload: { ...breach.payload, test: true } });
      sent.push('webhook');
    }
  } catch (cause) {
    throw new ApiError('upstream_unavailable', 'The alert could not be queued. Try again.', { cause });
  }
  return { event_id: breach.event_id, sent };
}
