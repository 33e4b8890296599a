import { it } from 'vitest';
import { AckPolicy } from '@nats-io/jetstream';
import { startTestNats } from '../../support/nats.ts';
import { openWebhookLog } from '../../support/webhooks.ts';
it.each([0, 50, 90, 150, 300, 1000])('churn %d/s', async (rate) => {
  const nats = await startTestNats(); const log = await openWebhookLog(nats.url);
  await log.jsm.streams.add({ name: 'T', subjects: ['t.>'], retention: 'workqueue' as never });
  await log.jsm.consumers.add('T', { durable_name: 'd', ack_policy: AckPolicy.Explicit, ack_wait: 30e9, max_ack_pending: -1 });
  for (let i = 0; i < 200; i++) await log.js.publish('t.late', String(i));
  for (let i = 0; i < 1000; i++) await log.js.publish('t.churn', String(i));
  const due = new Map<number, number>(); const late: number[] = []; let naks = 0;
  const c = await log.js.consumers.get('T', 'd'); const ms = await c.consume({ max_messages: 1000 });
  const queue: { nak(ms: number): void }[] = [];
  const started = performance.now();
  void (async () => { for await (const m of ms) {
    if (m.subject === 't.late') { const d = due.get(m.seq); if (d !== undefined) late.push(performance.now() - d); const w = Math.ceil(500 + Math.random() * 1000); due.set(m.seq, performance.now() + w); m.nak(w); }
    else queue.push(m);
  } })();
  const timer = setInterval(() => { const want = (performance.now() - started) / 1000 * rate; while (naks < want && queue.length > 0) { queue.shift()?.nak(3000); naks++; } }, 1);
  await new Promise((r) => setTimeout(r, 5000)); clearInterval(timer);
  late.sort((a, b) => a - b);
  console.log('RESULT', rate, naks, 'late n', late.length, 'p50', late[late.length >> 1], 'p99', late[Math.floor(late.length * 0.99)]);
  ms.stop(); await log.nc.close(); await nats.remove();
}, 30000);
