// Builds the platform events and the mail of a budget alert. Pure: ids and texts follow from the
// alert alone, so an alert that is sent twice after a crash has the same ids and receivers can drop
// the duplicate.
import { hex16 } from '../traces/ids.ts';
import type { DueAlert } from './alerts.ts';

export interface AlertPlace {
  org_id: string;
  org_name: string;
  /** Start of the period, ISO 8601. */
  period_start: string;
}

/**
 * A platform event before it is encoded. `payload` holds the fields of the event catalog, including
 * `event`.
 */
export interface AlertEvent {
  event_id: string;
  event: string;
  payload: Record<string, unknown>;
}

/** 16 hex digits that identify an alert: a hash of organization, period and key. */
const hexOf = (place: AlertPlace, key: string, of: string): string =>
  hex16(`${place.org_id}\n${place.period_start}\n${key}\n${of}`);

/**
 * Returns the events of an alert. A threshold and a crossed soft limit have two event names each. A
 * crossed hard limit has an event of its own, since no threshold may have its percentage. A soft
 * limit that coincides with a threshold has none: the threshold's event reports it.
 */
export function eventsOfAlert(alert: DueAlert, place: AlertPlace): AlertEvent[] {
  const event = (name: string, payload: Record<string, unknown>): AlertEvent => ({
    event_id: `evt_${hexOf(place, alert.key, name)}`,
    event: name,
    payload: { event: name, ...payload },
  });
  const { resource, percent, used, limits, severity, cause } = alert;
  const agent = alert.agent_id === null ? {} : { agent_id: alert.agent_id };
  const { org_id, period_start } = place;
  if (alert.by_threshold === true) return [];
  if (alert.kind === 'hard')
    return [
      event('budget.hard_exceeded', { org_id, resource, used, hard_limit: limits.hard_limit, ...agent, period_start }),
    ];
  const common = { resource, percent, used, ...limits, severity };
  // Alerts follow from many landings, so no single client request can be named.
  const request_id = `req_${hexOf(place, alert.key, 'request')}`;
  return [
    event('cost.threshold_breach', { ...common, org_id, ...agent, cause }),
    event('budget.threshold_breach', { org_id, ...common, period_start, request_id, ...agent, cause }),
  ];
}

/** Returns the mail to the organization's owner that reports a reached threshold. */
export function mailOfAlert(alert: DueAlert, place: AlertPlace): { mail_id: string; subject: string; text: string } {
  const limit = alert.limits.hard_limit ?? alert.limits.soft_limit;
  const projected = alert.cause === 'projected';
  const reached = projected
    ? `will reach about ${shown(alert.projected)} by the end of the period`
    : `has reached ${shown(alert.used)}`;
  return {
    mail_id: `mail_${hexOf(place, alert.key, 'mail')}`,
    subject: `[${alert.severity}] ${place.org_name}: ${alert.resource} at ${shown(alert.percent)} % of the budget${projected ? ' (projected)' : ''}`,
    text: [
      `The use of ${alert.resource} of ${place.org_name} (${place.org_id}) ${reached}.`,
      `Threshold: ${shown(alert.percent)} % of ${limit === null ? 'no limit' : shown(limit)}. Used so far: ${shown(alert.used)}.`,
      `Soft limit: ${alert.limits.soft_limit === null ? 'none' : shown(alert.limits.soft_limit)}. Hard limit: ${alert.limits.hard_limit === null ? 'none' : shown(alert.limits.hard_limit)}.`,
      `The period began on ${place.period_start.slice(0, 10)} (UTC).`,
      '',
    ].join('\n'),
  };
}

const shown = (amount: number): string => amount.toLocaleString('en-US', { maximumFractionDigits: 2 });
