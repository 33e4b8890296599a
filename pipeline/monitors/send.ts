// Sends the notices of a monitor: the platform event, which endpoints subscribe to, a delivery to
// each endpoint that a channel names, and a mail to each address. Resolves when all are stored. Every
// id follows from the notice, so a repeat is recognized.
import { queueMail } from '../../ops/exchange/mail_queue.ts';
import { freshDelivery, publishDelivery } from '../../ops/exchange/webhook_queue.ts';
import type { Log } from '../../ops/platform/nats/open_log.ts';
import type { MonitorNotice, MonitorRecord } from '../../schemas/records/monitor.ts';
import { mailOfNotice } from '../domain/monitors/mail.ts';
import { type JobEvent, publishJobEvent } from '../jobs/job_event.ts';

export type SendNotice = (monitor: MonitorRecord, notice: MonitorNotice) => Promise<void>;

export function createSender(log: Log, onPublished: (event: string) => void): SendNotice {
  return async (monitor, notice) => {
    const { org_id, channels } = monitor;
    const { event_id, event, payload, at_ms } = notice;
    const published: JobEvent = { event_id, event, org_id, payload };
    await publishJobEvent(log, published);
    onPublished(event);
    for (const target_id of endpointsOf(channels)) {
      const body = JSON.stringify(payload);
      const delivery = {
        event_id,
        event,
        org_id,
        target_kind: 'endpoint' as const,
        target_id,
        body,
        created_at: at_ms,
      };
      // The fan-out stores its deliveries under the same tag, so an endpoint that also subscribes gets one.
      await publishDelivery(log, freshDelivery(delivery), '0');
    }
    for (const to of addressesOf(channels))
      await queueMail(log, { ...mailOfNotice(monitor, notice, to), org_id, to, secret: '', created_at: at_ms });
  };
}

const endpointsOf = (channels: MonitorRecord['channels']): Set<string> =>
  new Set(channels.flatMap((one) => (one.type === 'webhook' && one.webhook_id !== undefined ? [one.webhook_id] : [])));
const addressesOf = (channels: MonitorRecord['channels']): Set<string> =>
  new Set(channels.flatMap((one) => (one.type === 'email' ? one.to : [])));
