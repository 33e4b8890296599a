// No delivery is lost: workers are killed during an attempt, NATS stops and restarts, and events
// are published while no sender runs.
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Log } from '../../../ops/platform/nats/open_log.ts';
import { WEBHOOKS_STREAM } from '../../../schemas/streams.ts';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import { hang, type Receiver, startReceiver, status } from '../../support/receiver.ts';
import { eventually } from '../../support/wait.ts';
import {
  FAST,
  forkWebhooks,
  openWebhookLog,
  publishEvents,
  putEndpoint,
  startTestWebhooks,
} from '../../support/webhooks.ts';

let nats: TestNats;
let receiver: Receiver;
let log: Log;

beforeAll(async () => {
  nats = await startTestNats();
  receiver = await startReceiver();
  log = await openWebhookLog(nats.url);
});
afterAll(async () => {
  await log.nc.close();
  await receiver.close();
  await nats.remove();
});

const ids = (path: string) => new Set(receiver.at(path).map(({ event_id }) => event_id));

it('when a worker is killed between the POST and the acknowledgement, another one sends again under the same id', async () => {
  const path = '/kill';
  await putEndpoint(log, { org_id: 'org_kill', url: receiver.url + path });
  const first = await forkWebhooks(nats.url);
  const killed = new Promise((resolve) => first.once('exit', resolve));
  receiver.behave(path, (res, got) => {
    // The receiver has the event; the worker is killed before it gets the answer.
    if (receiver.at(path).length === 1) first.kill('SIGKILL');
    else status(200)(res, got);
  });
  const sent = await publishEvents(log, 3, { org_id: 'org_kill' });
  await killed;
  const second = await forkWebhooks(nats.url);
  await eventually(() => receiver.at(path).length >= 4 && ids(path).size === 3);
  expect(ids(path)).toEqual(new Set(sent));
  const again = receiver.at(path).filter(({ event_id }) => event_id === receiver.at(path)[0]?.event_id);
  // An attempt whose outcome no worker saw is repeated under the same attempt number.
  expect(again.map(({ attempt }) => attempt)).toEqual([0, 0]);
  await eventually(async () => (await log.jsm.streams.info(WEBHOOKS_STREAM)).state.messages === 0);
  second.kill('SIGKILL');
});

it('when a worker is killed while retries wait, the count of attempts continues', async () => {
  const path = '/count';
  let failing = true;
  receiver.behave(path, (res, got) => {
    status(failing ? 500 : 200)(res, got);
  });
  await putEndpoint(log, { org_id: 'org_count', url: receiver.url + path });
  const first = await forkWebhooks(nats.url);
  await publishEvents(log, 1, { org_id: 'org_count' });
  await eventually(() => receiver.at(path).length >= 4);
  const gone = new Promise((resolve) => first.once('exit', resolve));
  first.kill('SIGKILL');
  await gone;
  const before = receiver.at(path).length;
  failing = false;
  const second = await startTestWebhooks(nats.url);
  await eventually(() => receiver.at(path).length > before);
  const attempts = receiver.at(path).map(({ attempt }) => attempt);
  expect(attempts.at(-1)).toBeGreaterThanOrEqual(attempts[before - 1] ?? 0);
  expect(attempts.at(-1)).toBeGreaterThanOrEqual(3);
  await second.stop();
});

it('events published while no worker runs are delivered when one does', async () => {
  const path = '/later';
  await putEndpoint(log, { org_id: 'org_later', url: receiver.url + path });
  const sent = await publishEvents(log, 500, { org_id: 'org_later' });
  const worker = await startTestWebhooks(nats.url);
  await eventually(() => ids(path).size === 500);
  expect(ids(path)).toEqual(new Set(sent));
  await worker.stop();
});

it('a worker that shuts down returns its deliveries in flight, and another one continues', async () => {
  const path = '/stop';
  receiver.behave(path, hang);
  await putEndpoint(log, { org_id: 'org_stop', url: receiver.url + path });
  const first = await startTestWebhooks(nats.url, { timings: { ...FAST, timeoutMs: 60_000 } });
  const [id = ''] = await publishEvents(log, 1, { org_id: 'org_stop' });
  await eventually(() => receiver.at(path).length === 1);
  await first.stop();
  receiver.behave(path, status(200));
  const second = await startTestWebhooks(nats.url);
  await eventually(() => receiver.at(path).length === 2);
  expect(receiver.at(path).map(({ event_id, attempt }) => [event_id, attempt])).toEqual([
    [id, 0],
    [id, 0],
  ]);
  await second.stop();
});

it('every event is delivered when NATS is killed and restarted in between', async () => {
  const path = '/nats';
  receiver.behave(path, (res, got) => {
    status(got.attempt === 0 ? 503 : 200)(res, got);
  });
  await putEndpoint(log, { org_id: 'org_nats', url: receiver.url + path });
  const worker = await startTestWebhooks(nats.url);
  const sent = await publishEvents(log, 200, { org_id: 'org_nats' });
  await eventually(() => receiver.at(path).length > 20);
  await nats.kill();
  await nats.start();
  const delivered = () =>
    new Set(
      receiver
        .at(path)
        .filter(({ attempt }) => attempt > 0)
        .map(({ event_id }) => event_id),
    );
  await eventually(() => delivered().size === 200, { what: 'all events' });
  expect(delivered()).toEqual(new Set(sent));
  await eventually(async () => (await log.jsm.streams.info(WEBHOOKS_STREAM)).state.messages === 0);
  await worker.stop();
});
