import { it } from 'vitest';
import { startTestNats } from '../../support/nats.ts';
import { startReceiver, status } from '../../support/receiver.ts';
import { eventually } from '../../support/wait.ts';
import { publishEvents, putEndpoint, startTestWebhooks } from '../../support/webhooks.ts';
it.each([false, true])('x %s', async (kill) => {
  const nats = await startTestNats(); const receiver = await startReceiver();
  receiver.behave('/n', (res, got) => { status(got.attempt === 0 ? 503 : 200)(res, got); });
  const worker = await startTestWebhooks(nats.url);
  await putEndpoint(worker.log, { org_id: 'o', url: receiver.url + '/n' });
  const t = performance.now();
  await publishEvents(worker.log, 200, { org_id: 'o' });
  await eventually(() => receiver.received.length > 20);
  if (kill) { await nats.kill(); await nats.start(); }
  await eventually(() => new Set(receiver.received.filter(({attempt})=>attempt>0).map(({event_id})=>event_id)).size === 200, {withinMs: 60000});
  const hist: Record<string, number> = {};
  for (const r of receiver.received) { const k = `${Math.floor((r.at - t)/500)*500}:${r.attempt}`; hist[k] = (hist[k] ?? 0) + 1; }
  console.log(kill, performance.now() - t, JSON.stringify(hist));
  await worker.stop(); await receiver.close(); await nats.remove();
}, 90000);
