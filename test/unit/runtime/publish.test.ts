// What the pipeline publishes, against a JetStream that rejects: permanent failures are not waited
// for, and nothing is dropped silently.
import { InvalidArgumentError, type MsgHdrs } from '@nats-io/transport-node';
import { JetStreamApiError } from '@nats-io/jetstream';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { createLogger } from '../../../ops/platform/logger.ts';
import type { Log } from '../../../ops/platform/nats/open_log.ts';
import { EVENTS_SUBJECT, MESSAGE_BYTES_MAX } from '../../../schemas/streams.ts';
import { Publisher } from '../../../pipeline/worker/publish.ts';
import {
  bodyBytesMax,
  CUT_BODY_BYTES_MAX,
  DeadLetters,
  itemLetter,
  NoRoomForLetter,
  WHOLE_BODY_BYTES_MAX,
} from '../../../pipeline/queues/dead_letters.ts';
import type { DeadLetterEntry } from '../../../pipeline/worker/prepare.ts';
import type { TraceEvent } from '../../../pipeline/traces/trace_events.ts';
import { LIMITS } from '../../../pipeline/limits.ts';
import {
  BODY_BYTES_HEADER,
  type DeadLetter,
  deadLetterCodec,
  type JudgingTask,
  serviceEventsCodec,
} from '../../../schemas/codec.ts';

const MIB = 1024 * 1024;
const full = (): Error => new JetStreamApiError({ code: 503, err_code: 10077, description: 'maximum bytes exceeded' });

interface Message {
  subject: string;
  data: Uint8Array;
  msgID: string;
  head: MsgHdrs;
}

/** A JetStream in memory, with the bounds of a message and of DEAD_LETTERS. */
class BoundedStreams {
  readonly stored: Message[] = [];
  tries = 0;
  payloadMax = MESSAGE_BYTES_MAX;
  lettersMax = 1024 * MIB;
  lettersBytes = 0;
  /** Rejections of the next publishes. */
  failures: Error[] = [];

  readonly log = {
    js: {
      publish: (subject: string, data: Uint8Array, { msgID, headers: head }: { msgID: string; headers: MsgHdrs }) => {
        this.tries += 1;
        // Fails a test that would retry for ever.
        if (this.tries > 5000) throw new Error('tried for ever');
        const failure = this.failures.shift();
        if (failure !== undefined) return Promise.reject(failure);
        if (data.length > this.payloadMax)
          return Promise.reject(InvalidArgumentError.format('payload', 'max_payload size exceeded'));
        if (subject.startsWith('dead.')) {
          if (this.lettersBytes + data.length > this.lettersMax) return Promise.reject(full());
          this.lettersBytes += data.length;
        }
        this.stored.push({ subject, data, msgID, head });
        return Promise.resolve({ seq: this.stored.length });
      },
    },
    jsm: {
      streams: {
        info: () => Promise.resolve({ state: { bytes: this.lettersBytes }, config: { max_bytes: this.lettersMax } }),
      },
    },
  } as unknown as Log;

  letters(): { letter: DeadLetter; whole: number }[] {
    return this.stored.flatMap(({ subject, data, head }) => {
      if (!subject.startsWith('dead.')) return [];
      const letter = deadLetterCodec.decode(data, deadLetterCodec.fingerprint);
      return [
        { letter, whole: head.has(BODY_BYTES_HEADER) ? Number(head.get(BODY_BYTES_HEADER)) : letter.body.length },
      ];
    });
  }

  batches(): { bytes: number; ids: string[] }[] {
    return this.stored.flatMap(({ subject, data }) => {
      if (subject !== EVENTS_SUBJECT) return [];
      const { events } = serviceEventsCodec.decode(data, serviceEventsCodec.fingerprint);
      return [
        {
          bytes: data.length,
          ids: events.map(({ payload }) => (JSON.parse(payload) as { trace_id: string }).trace_id),
        },
      ];
    });
  }
}

let streams: BoundedStreams;
let lost = 0;
const published = new Map<string, number>();
const publisher = () =>
  new Publisher(streams.log, createLogger('test', 'silent'), {
    now: () => 7,
    onPublished: (event, count) => published.set(event, (published.get(event) ?? 0) + count),
    onLetterLost: () => (lost += 1),
  });

beforeEach(() => {
  streams = new BoundedStreams();
  lost = 0;
  published.clear();
});

/** Returns a trace.completed with this number of scores. */
const completed = (trace_id: string, judges: number, name = '\u{1F600}'.repeat(100)): TraceEvent => ({
  event: 'trace.completed',
  org_id: 'org_a',
  trace_id,
  payload: {
    event: 'trace.completed',
    trace_id,
    judge_scores: Object.fromEntries(Array.from({ length: judges }, (_, index) => [`${name}${index}`, 0.123456789])),
  },
});
const idsOf = (count: number): string[] => Array.from({ length: count }, (_, index) => `trc_${index}`);

describe('telling events', () => {
  it('published events are bounded by bytes a message: completed traces with the scores of 200 judges', async () => {
    await publisher().publishEvents(idsOf(300).map((id) => completed(id, 200)));
    const batches = streams.batches();
    expect(batches.flatMap(({ ids }) => ids)).toEqual(idsOf(300));
    expect(Math.max(...batches.map(({ bytes }) => bytes))).toBeLessThanOrEqual(LIMITS.service_events_bytes_max);
    expect(streams.tries).toBe(batches.length);
    expect(published).toEqual(new Map([['trace.completed', 300]]));
  });

  it('published events are bounded by number a message too', async () => {
    await publisher().publishEvents(idsOf(4001).map((id) => completed(id, 0)));
    expect(streams.batches().map(({ ids }) => ids.length)).toEqual([2000, 2000, 1]);
  });

  it('the largest possible event fits a message: 2,000 scores under the longest names, each character escaped', async () => {
    await publisher().publishEvents([completed('trc_1', 2000, '\u0001'.repeat(200))]);
    expect(streams.batches()).toHaveLength(1);
    expect(streams.batches()[0]?.bytes).toBeLessThan(MESSAGE_BYTES_MAX / 2);
  });

  it('a message that the server rejects is split in two, and an event that it always rejects is kept', async () => {
    streams.payloadMax = 64 * 1024;
    const events = idsOf(100).map((id) => completed(id, id === 'trc_50' ? 200 : 2));
    await publisher().publishEvents(events);
    expect(streams.batches().flatMap(({ ids }) => ids)).toEqual(idsOf(100).filter((id) => id !== 'trc_50'));
    const [kept] = streams.letters();
    expect(kept?.letter).toMatchObject({ stage: 'events', reason: 'too_large', org_id: '', log_index: -1 });
    expect(published).toEqual(new Map([['trace.completed', 99]]));
  });

  it('a failure that may pass is retried', async () => {
    streams.failures = [
      new Error('timeout'),
      new JetStreamApiError({ code: 503, err_code: 10008, description: 'no leader' }),
    ];
    await publisher().publishEvents([completed('trc_1', 1)]);
    expect([streams.tries, streams.batches().length]).toEqual([3, 1]);
  });
});

it('a task that JUDGING rejects is kept, and its neighbours are enqueued', async () => {
  const task = (task_id: string): JudgingTask => ({
    task_id,
    kind: 'live',
    org_id: 'org_a',
    judge_id: 'judge_1',
    judge_version: 1,
    agent_id: '',
    eval_id: '',
    chunk: 0,
    trace_ids: ['trc_1'],
    created_at: 1,
  });
  streams.failures = [
    new JetStreamApiError({ code: 400, err_code: 10054, description: 'message size exceeds maximum allowed' }),
  ];
  await publisher().enqueueTasks([task('task_1'), task('task_2')]);
  expect(streams.stored.map(({ subject, msgID }) => [subject, msgID])).toEqual([
    ['judging.live', 'task_2'],
    ['dead.judging', 'dead:judging:task_1'],
  ]);
});

const anEntry = (log_index: number, bytes: number, org_id = 'org_a'): DeadLetterEntry => ({
  dead: {
    step: 'decode',
    reason: 'decode_failed',
    detail: 'x'.repeat(10_000),
    position: { partition: 1, log_seq: 9, log_index },
  },
  event: {
    org_id,
    format: 'custom',
    event_hex: '0123456789abcdef',
    trace_id: 'trc_1',
    received_at: 5,
    body: 'b'.repeat(bytes),
    partition: 1,
    log_seq: 9,
    log_index,
  },
  raw: null,
});

describe('dead letters', () => {
  it('dead letters keep events whole, up to the end of the largest that the log accepts', async () => {
    await publisher().deadLetter([anEntry(0, 10), anEntry(1, MESSAGE_BYTES_MAX - 4096)]);
    expect(streams.letters().map(({ letter, whole }) => [letter.body.length, whole])).toEqual([
      [10, 10],
      [WHOLE_BODY_BYTES_MAX, MESSAGE_BYTES_MAX - 4096],
    ]);
    expect([streams.tries, lost]).toEqual([2, 0]);
  });

  it('keeps the letters of other organizations when one fills the stream, and counts each letter that is lost', async () => {
    vi.useFakeTimers({ toFake: ['performance'] });
    try {
      streams.lettersMax = 8 * MIB;
      const sender = publisher();
      for (let index = 0; index < 200; index += 1) {
        await sender.deadLetter([anEntry(index, MIB, 'org_flood')]);
        vi.advanceTimersByTime(2000);
      }
      const flood = streams.letters();
      expect(flood).toHaveLength(200);
      expect(new Set(flood.map(({ letter }) => letter.body.length))).toEqual(new Set([MIB, CUT_BODY_BYTES_MAX, 0]));
      expect(new Set(flood.map(({ whole }) => whole))).toEqual(new Set([MIB]));
      await sender.deadLetter([anEntry(1000, 100, 'org_b')]);
      expect(streams.letters().at(-1)?.letter).toMatchObject({
        org_id: 'org_b',
        log_seq: 9,
        log_index: 1000,
        reason: 'decode_failed',
      });
      expect(lost).toBe(0);
      // Full to the last byte: landing continues all the same.
      streams.lettersBytes = streams.lettersMax;
      streams.tries = 0;
      await sender.deadLetter([anEntry(1001, 100), anEntry(1002, MIB)]);
      expect([lost, streams.tries]).toEqual([2, 2]);
    } finally {
      vi.useRealTimers();
    }
  });

  it('dead letters wait for a stream that does not answer', async () => {
    streams.failures = [
      new Error('timeout'),
      new JetStreamApiError({ code: 503, err_code: 10077, description: 'error storing message' }),
    ];
    await publisher().deadLetter([anEntry(0, 10)]);
    expect([streams.tries, streams.letters().length, lost]).toEqual([3, 1, 0]);
  });
});

describe('a letter', () => {
  const letter = (bytes: number): DeadLetter =>
    itemLetter({
      stage: 'audit',
      reason: 'refused',
      detail: '',
      log_seq: 3,
      died_at: 1,
      body: Buffer.alloc(bytes, 'b'),
    });

  it('a dead letter contains less of its body the fuller the stream is', () => {
    expect([0, 0.49, 0.5, 0.89, 0.9, 1].map(bodyBytesMax)).toEqual([
      WHOLE_BODY_BYTES_MAX,
      WHOLE_BODY_BYTES_MAX,
      CUT_BODY_BYTES_MAX,
      CUT_BODY_BYTES_MAX,
      0,
      0,
    ]);
  });

  it('a rejected dead letter is offered smaller, and reports when there is no room at all', async () => {
    streams.payloadMax = 128 * 1024;
    await new DeadLetters(streams.log).put(letter(MIB), 'one');
    expect(streams.letters().map(({ letter: kept, whole }) => [kept.body.length, whole])).toEqual([
      [CUT_BODY_BYTES_MAX, MIB],
    ]);
    streams.lettersMax = streams.lettersBytes + 1024;
    await new DeadLetters(streams.log).put(letter(MIB), 'two');
    expect(streams.letters().at(-1)?.letter.body).toHaveLength(0);
    streams.lettersMax = streams.lettersBytes;
    await expect(new DeadLetters(streams.log).put(letter(1), 'three')).rejects.toThrow(NoRoomForLetter);
  });

  it("a dead letter is stored whole when the stream's fullness is unknown", async () => {
    streams.log.jsm.streams.info = () => Promise.reject(new Error('timeout'));
    await new DeadLetters(streams.log).put(letter(MIB), 'one');
    expect(streams.letters().map(({ letter: kept }) => kept.body.length)).toEqual([MIB]);
  });
});
