import { afterAll, beforeAll, expect, it } from 'vitest';
import { jetstreamManager } from '@nats-io/jetstream';
import { AckInbox, type PublishFailure, type Stored } from '../../../api/intake/ingest/ack_inbox.ts';
import { connectNats, trackConnected } from '../../../ops/platform/nats/connect.ts';
import { INGEST_STREAM } from '../../../schemas/streams.ts';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import { eventually } from '../../support/wait.ts';

let nats: TestNats;

beforeAll(async () => {
  nats = await startTestNats();
});
afterAll(() => nats.remove());

it('a message that no server accepts, as when a cluster changes its leader, is published again until it is accepted or dropped', async () => {
  const nc = await connectNats({ url: nats.url, name: 'test', waitMs: 5000 });
  try {
    const inbox = new AckInbox(nc, trackConnected(nc), (_stream, seq) => seq);
    const settled = new Map<string, Stored | PublishFailure>();
    for (const id of ['taken', 'forgotten'])
      inbox.publish(id, 'ingest.0', new Uint8Array([1]), (outcome) => settled.set(id, outcome));
    await eventually(() => nc.stats().outMsgs >= 4, { what: 'both were offered twice' });
    expect(settled.size).toBe(0);
    inbox.forget('forgotten');
    await (await jetstreamManager(nc)).streams.add({ name: INGEST_STREAM, subjects: ['ingest.*'] });
    await eventually(() => settled.size > 0);
    expect([...settled]).toEqual([['taken', { kind: 'stored', position: 1 }]]);
  } finally {
    await nc.close();
  }
});

it('a cluster whose servers have different logins is rejected with the address of the server that differs', async () => {
  await expect(
    connectNats({ url: 'nats://a@127.0.0.1:1,nats://b@127.0.0.1:2', name: 'test', waitMs: 0 }),
  ).rejects.toThrow('NATS at 127.0.0.1:2: every server of a cluster must accept the login of the first');
});
