// Events of a batch are found again by their position, for the few that become dead letters.
import { expect, it } from 'vitest';
import type { LoggedEvent, LogPosition } from '../../../pipeline/stage.ts';
import { eventsOf, sourcesOf } from '../../../pipeline/worker/read_messages.ts';
import type { TakenMessage } from '../../../pipeline/worker/prepare.ts';
import { ingestBatchCodec } from '../../../schemas/codec.ts';

const LOG_BASE = 100;

function aMessage(position: number, bodies: readonly string[]): TakenMessage {
  const data = ingestBatchCodec.encode({
    events: bodies.map((body, index) => ({
      org_id: 'org_a',
      format: 'custom',
      event_hex: `${position}${index}`.padStart(16, '0'),
      trace_id: 'trc_1',
      received_at: 1,
      body,
    })),
  });
  const { fingerprint } = ingestBatchCodec;
  return { position, partition: 0, readers: [0], partitions: new Set([0]), fingerprint, data };
}

const at = (log_seq: number, log_index: number): LogPosition => ({ partition: 3, log_seq, log_index });
const eventOf = (held: readonly LoggedEvent[] = []) =>
  eventsOf({ logBase: LOG_BASE }, [aMessage(1, ['a', 'b']), aMessage(2, ['c'])], sourcesOf(held));

it('finds the event of every position, in any order', () => {
  const find = eventOf();
  const found = [at(102, 0), at(101, 1), at(101, 0), at(102, 0)].map(find);
  expect(found.map((event) => event?.body)).toEqual(['c', 'b', 'a', 'c']);
  expect(found[1]).toMatchObject({ ...at(101, 1), org_id: 'org_a', event_hex: '0000000000000011' });
});

it('finds nothing at positions of no event', () => {
  expect([at(101, 2), at(103, 0), at(101, -1)].map(eventOf())).toEqual([null, null, null]);
});

it('returns an event as it was logged, whatever else a stage has made of it', () => {
  const decoded = { ...at(101, 0), spans: [], org_id: 'org_b' };
  const event = eventOf()(decoded);
  expect(event).toMatchObject({ org_id: 'org_a', body: 'a' });
  expect(event).not.toHaveProperty('spans');
});

it('knows the events of earlier messages that it is given', () => {
  const first = eventOf()(at(101, 0));
  if (first == null) throw new Error('the batch has the event');
  const earlier = { ...first, log_seq: 90, body: 'released' };
  expect(eventOf([earlier])(at(90, 0))).toEqual(earlier);
});
