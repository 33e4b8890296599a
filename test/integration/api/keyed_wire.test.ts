import { afterAll, beforeAll, expect, it } from 'vitest';
import { JetStreamApiError } from '@nats-io/jetstream';
import { Kvm } from '@nats-io/kv';
import { KeyedWire } from '../../../api/http/keyed_wire.ts';
import { isLostWrite } from '../../../ops/platform/nats/conflict.ts';
import { connectNats } from '../../../ops/platform/nats/connect.ts';
import { startTestNats, type TestNats } from '../../support/nats.ts';

let nats: TestNats;

beforeAll(async () => {
  nats = await startTestNats();
});
afterAll(() => nats.remove());

it.each([true, false])('reads the entry of a bucket whichever replica answers: %s', async (allow_direct) => {
  const nc = await connectNats({ url: nats.url, name: 'test', waitMs: 5000 });
  try {
    const kv = await new Kvm(nc).create(`wire_${String(allow_direct)}`, { allow_direct });
    const wire = new KeyedWire(nc, `wire_${String(allow_direct)}`);
    expect(await wire.get('none', 2000)).toBeNull();
    const revision = await wire.create('key', '{"a": "ä"}', 2000);
    expect(await wire.get('key', 2000)).toEqual({ text: '{"a": "ä"}', revision });
    await kv.delete('key');
    expect(await wire.get('key', 2000)).toBeNull();
    expect(isLostWrite(await wire.create('key', 'again', 2000).catch((error: unknown) => error))).toBe(true);
  } finally {
    await nc.close();
  }
});

it('recognises a lost write by either code of a server or a cluster', () => {
  const refused = (err_code: number) =>
    new JetStreamApiError({ code: 400, err_code, description: 'wrong last sequence' });
  expect([10071, 10164, 10077].map((code) => isLostWrite(refused(code)))).toEqual([true, true, false]);
  expect(isLostWrite(new Error('wrong last sequence'))).toBe(false);
});
