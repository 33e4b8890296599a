// Writes the mail that reports a change of a monitor. Pure: its id follows from the notice and the
// address, so a mail that is sent twice after a crash is recognized as one.
import type { MonitorNotice, MonitorRecord } from '../../../schemas/records/monitor.ts';
import { hex16 } from '../traces/ids.ts';

const VALUE_DIGITS_MAX = 6;

/** Returns the mail about a notice to one address. */
export function mailOfNotice(
  monitor: MonitorRecord,
  notice: MonitorNotice,
  to: string,
): { mail_id: string; subject: string; text: string } {
  const { payload } = notice;
  const group = Object.entries(payload['group'] as Record<string, string>)
    .map(([dimension, value]) => ` (${dimension} ${value})`)
    .join('');
  const alerting = notice.event === 'monitor.alerting';
  const [measure] = monitor.query.measures;
  const value = payload['value'] as number | null;
  return {
    mail_id: `mail_${hex16(`${notice.event_id}\n${to}`)}`,
    subject: `[${alerting ? monitor.severity : 'resolved'}] ${monitor.name}${group}`,
    text: [
      alerting
        ? `The monitor ${monitor.name}${group} is alerting.`
        : `The monitor ${monitor.name}${group} is resolved.`,
      `Value: ${value === null ? 'no data' : shown(value)} (${measure?.agg ?? ''} of ${measure?.measure ?? ''} over ${monitor.window_minutes} minutes).`,
      `Threshold: ${'above' in monitor.threshold ? `above ${shown(monitor.threshold.above)}` : `below ${shown(monitor.threshold.below)}`}.`,
      ...(alerting
        ? []
        : [
            `Reason: ${RESOLUTIONS[String(payload['reason'])] ?? ''}. It was alerting since ${String(payload['alerting_at'])}.`,
          ]),
      `Organization: ${monitor.org_id}. Monitor: ${monitor.monitor_id}.`,
      '',
    ].join('\n'),
  };
}

const RESOLUTIONS: Readonly<Record<string, string>> = {
  ok: 'the value is within the threshold',
  no_data: 'there is no data',
  changed: 'the query of the monitor was changed',
  disabled: 'the monitor was disabled',
  deleted: 'the monitor was deleted',
};

const shown = (value: number): string => value.toLocaleString('en-US', { maximumFractionDigits: VALUE_DIGITS_MAX });
