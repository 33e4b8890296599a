// Group commit: which requests share a message, in which order and within which bounds, and which
// requests a failure affects.
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { LogPort, PublishFailure, Settle, Stored } from '../../../api/intake/ingest/ack_inbox.ts';
import {
  COMMIT_MS_MAX,
  MESSAGE_BYTES_TARGET,
  MESSAGE_EVENTS_MAX,
  OWN_MESSAGE_BYTES,
  type OpenStream,
  type OutgoingEvent,
  Publisher,
  RESEND_MS,
} from '../../../api/intake/ingest/publisher.ts';
import { firstLayout, LogLayout } from '../../../schemas/log_layout.ts';
import { ingestBatchCodec } from '../../../schemas/codec.ts';

interface Sent {
  id: string;
  subject: string;
  bodies: string[];
  settle: Settle;
}

/** A log whose confirmations arrive when the test says so. */
class ManualLog implements LogPort {
  connected = true;
  broken = false;
  readonly sent: Sent[] = [];
  readonly forgotten: string[] = [];

  publish(id: string, subject: string, payload: Uint8Array, settle: Settle): void {
    if (this.broken) throw new Error('the connection is closed');
    const { events } = ingestBatchCodec.decode(payload, ingestBatchCodec.fingerprint);
    this.sent.push({ id, subject, bodies: events.map(({ body }) => body), settle });
  }

  forget(id: string): void {
    this.forgotten.push(id);
  }

  at(index: number): Sent {
    const sent = this.sent[index];
    if (sent === undefined) throw new Error(`message ${index} of ${this.sent.length}`);
    return sent;
  }
}

const ONE_STREAM = new LogLayout(firstLayout(1, 2)).open;

let log: ManualLog;
let publisher: Publisher;

beforeEach(() => {
  vi.useFakeTimers({
    toFake: ['setInterval', 'clearInterval', 'setTimeout', 'clearTimeout', 'setImmediate', 'performance'],
  });
  log = new ManualLog();
  publisher = new Publisher({
    port: log,
    partitions: 2,
    streams: ONE_STREAM,
    now: () => performance.now(),
    observe: () => undefined,
  });
});

afterEach(() => {
  vi.useRealTimers();
});

function event(body: string, partition = 0, bytes = body.length): OutgoingEvent {
  return {
    event: { org_id: 'o', format: 'custom', event_hex: '0', trace_id: 't', received_at: 1, body },
    partition,
    bytes,
  };
}

/** Tracks the state of a promise. */
function watched(promise: Promise<unknown>): { state: string } {
  const seen = { state: 'open' };
  promise.then(
    () => (seen.state = 'stored'),
    (error: unknown) => (seen.state = (error as { code: string }).code),
  );
  return seen;
}

const stored = (position: number): Stored => ({ kind: 'stored', position });

const turn = () => vi.advanceTimersByTimeAsync(1);

describe('sharing', () => {
  test('requests of one turn share a message; those that arrive while it is in flight share the next, in order', async () => {
    const first = [watched(publisher.publish([event('a')])), watched(publisher.publish([event('b')]))];
    await turn();
    const second = [watched(publisher.publish([event('c')])), watched(publisher.publish([event('d')]))];
    await turn();
    expect(log.sent.map(({ bodies }) => bodies)).toEqual([['a', 'b']]);
    log.at(0).settle(stored(1));
    await turn();
    expect(first.map(({ state }) => state)).toEqual(['stored', 'stored']);
    expect(second.map(({ state }) => state)).toEqual(['open', 'open']);
    expect(log.at(1).bodies).toEqual(['c', 'd']);
    log.at(1).settle(stored(1));
    await turn();
    expect(second.map(({ state }) => state)).toEqual(['stored', 'stored']);
  });

  test('small events share a message, whatever their partition', async () => {
    const seen = [
      watched(publisher.publish([event('a', 0), event('b', 1)])),
      watched(publisher.publish([event('c', 1)])),
    ];
    await turn();
    expect(log.sent.map(({ subject }) => subject)).toEqual(['ingest.mixed']);
    expect(log.at(0).bodies.toSorted()).toEqual(['a', 'b', 'c']);
    log.at(0).settle(stored(1));
    await turn();
    expect(seen.map(({ state }) => state)).toEqual(['stored', 'stored']);
  });

  test('a request learns the positions of its events in each partition', async () => {
    const promise = publisher.publish([event('a', 0), event('b', 1), event('much', 1, OWN_MESSAGE_BYTES)]);
    await turn();
    expect(log.sent.map(({ subject }) => subject)).toEqual(['ingest.1', 'ingest.mixed']);
    log.at(0).settle(stored(8));
    log.at(1).settle(stored(7));
    expect(await promise).toEqual(
      new Map([
        [0, 7],
        [1, 8],
      ]),
    );
  });

  test('a busy partition does not wait for the shared message, nor the shared message for it', async () => {
    const first = watched(publisher.publish([event('little', 0)]));
    await turn();
    const much = watched(publisher.publish([event('much', 0, OWN_MESSAGE_BYTES)]));
    await turn();
    expect(log.sent.map(({ subject }) => subject)).toEqual(['ingest.mixed', 'ingest.0']);
    log.at(1).settle(stored(1));
    await turn();
    expect([first.state, much.state]).toEqual(['open', 'stored']);
    const next = watched(publisher.publish([event('next', 0)]));
    await turn();
    expect(log.sent).toHaveLength(2);
    log.at(0).settle(stored(1));
    await turn();
    expect(log.at(2).bodies).toEqual(['next']);
    log.at(2).settle(stored(1));
    await turn();
    expect([first.state, next.state]).toEqual(['stored', 'stored']);
  });

  test('a request over two partitions is stored when both are', async () => {
    const seen = watched(publisher.publish([event('a', 0, OWN_MESSAGE_BYTES), event('b', 1, OWN_MESSAGE_BYTES)]));
    await turn();
    expect(log.sent.map(({ subject }) => subject)).toEqual(['ingest.0', 'ingest.1']);
    log.at(1).settle(stored(1));
    await turn();
    expect(seen.state).toBe('open');
    log.at(0).settle(stored(1));
    await turn();
    expect(seen.state).toBe('stored');
  });

  test('a slow partition does not delay another', async () => {
    void publisher.publish([event('slow', 0, OWN_MESSAGE_BYTES)]).catch(() => undefined);
    await turn();
    const other = watched(publisher.publish([event('fast', 1)]));
    await turn();
    log.at(1).settle(stored(1));
    await turn();
    expect(other.state).toBe('stored');
  });

  test('messages stay within their maximum bytes; a larger event travels alone', async () => {
    const half = Math.ceil(MESSAGE_BYTES_TARGET / 2);
    const seen = watched(
      publisher.publish([
        event('a', 0, half),
        event('b', 0, half - 10),
        event('c', 0, half),
        event('huge', 0, MESSAGE_BYTES_TARGET * 4),
        event('d', 0, 1),
      ]),
    );
    for (let index = 0; index < 4; index++) {
      await turn();
      log.at(index).settle(stored(1));
    }
    await turn();
    expect(log.sent.map(({ bodies }) => bodies)).toEqual([['a', 'b'], ['c'], ['huge'], ['d']]);
    expect(seen.state).toBe('stored');
  });

  test('messages stay within their maximum number of events', async () => {
    for (let sent = 0; sent < 3; sent++)
      void publisher.publish(Array.from({ length: MESSAGE_EVENTS_MAX / 2 }, () => event('x', 0, 1)));
    await turn();
    log.at(0).settle(stored(1));
    await turn();
    expect(log.sent.map(({ bodies }) => bodies.length)).toEqual([MESSAGE_EVENTS_MAX, MESSAGE_EVENTS_MAX / 2]);
  });
});

describe('several streams', () => {
  const layout = new LogLayout(firstLayout(2, 2));
  const aPublisher = (streams: readonly OpenStream[]) =>
    new Publisher({ port: log, partitions: 2, streams, now: () => performance.now(), observe: () => undefined });

  test('a mixed message has events of the partitions of one stream, and each stream has one in flight', async () => {
    publisher = aPublisher(layout.open);
    const seen = watched(publisher.publish([event('a', 0), event('b', 1)]));
    void publisher.publish([event('c', 0)]).catch(() => undefined);
    await turn();
    expect(log.sent.map(({ subject, bodies }) => [subject, bodies])).toEqual([
      ['ingest.mixed', ['a', 'c']],
      ['ingest.mixed_1_1', ['b']],
    ]);
    log.at(1).settle(stored(2));
    await turn();
    expect(seen.state).toBe('open');
    const next = watched(publisher.publish([event('d', 1)]));
    await turn();
    expect(log.at(2).subject).toBe('ingest.mixed_1_1');
    log.at(2).settle(stored(4));
    log.at(0).settle(stored(1));
    await turn();
    expect([seen.state, next.state]).toEqual(['stored', 'stored']);
    await publisher.flush();
  });

  test('when the streams change, events without an acknowledgement are published to the new streams, in order', async () => {
    publisher = aPublisher(ONE_STREAM);
    const first = watched(publisher.publish([event('a', 0), event('b', 1)]));
    await turn();
    const second = watched(publisher.publish([event('c', 1)]));
    await turn();
    publisher.changeStreams(layout.open);
    await turn();
    expect(log.forgotten).toContain(log.at(0).id);
    expect(log.sent.slice(1).map(({ subject, bodies }) => [subject, bodies])).toEqual([
      ['ingest.mixed', ['a']],
      ['ingest.mixed_1_1', ['b', 'c']],
    ]);
    // The old stream may have stored the message after all; the request waits for the new ones.
    log.at(0).settle(stored(1));
    await turn();
    expect([first.state, second.state]).toEqual(['open', 'open']);
    log.at(1).settle(stored(11));
    log.at(2).settle(stored(12));
    await turn();
    expect([first.state, second.state]).toEqual(['stored', 'stored']);
    await publisher.flush();
  });

  test('a change of the streams keeps the deadline of a request, and counts a rejected one as settled', async () => {
    publisher = aPublisher(ONE_STREAM);
    const seen = watched(publisher.publish([event('a', 0)], COMMIT_MS_MAX - 100));
    await turn();
    await vi.advanceTimersByTimeAsync(200);
    expect(seen.state).toBe('upstream_unavailable');
    publisher.changeStreams(layout.open);
    await turn();
    expect(log.sent).toHaveLength(1);
    await publisher.flush();
  });

  test('a layout with the same open streams changes nothing', async () => {
    void publisher.publish([event('a', 0)]).catch(() => undefined);
    await turn();
    publisher.changeStreams(new LogLayout(firstLayout(1, 2)).open);
    await turn();
    expect(log.sent).toHaveLength(1);
    expect(log.forgotten).toEqual([]);
  });
});

describe('failing', () => {
  test.each([
    [{ kind: 'full', detail: '10077 maximum bytes exceeded' } satisfies PublishFailure, 'rate_limited'],
    [{ kind: 'failed', detail: 'no stream' } satisfies PublishFailure, 'upstream_unavailable'],
  ])('a refused message fails every request in it and none after it', async (refusal, code) => {
    const inside = [watched(publisher.publish([event('a')])), watched(publisher.publish([event('b')]))];
    await turn();
    const after = watched(publisher.publish([event('c')]));
    log.at(0).settle(refusal);
    await turn();
    log.at(1).settle(stored(1));
    await turn();
    expect([...inside.map(({ state }) => state), after.state]).toEqual([code, code, 'stored']);
  });

  test('without a connection a request is rejected at once', async () => {
    log.connected = false;
    await expect(publisher.publish([event('a')])).rejects.toMatchObject({ code: 'upstream_unavailable' });
    expect(log.sent).toEqual([]);
  });

  test('a client that cannot even send fails the requests, not the process', async () => {
    log.broken = true;
    const seen = watched(publisher.publish([event('a')]));
    await turn();
    expect(seen.state).toBe('upstream_unavailable');
  });

  test('a late confirmation is requested once more under the same id, and given up within a second', async () => {
    const seen = watched(publisher.publish([event('a')]));
    await vi.advanceTimersByTimeAsync(RESEND_MS + 60);
    expect(log.sent.map(({ id }) => id)).toEqual([log.at(0).id, log.at(0).id]);
    expect(seen.state).toBe('open');
    await vi.advanceTimersByTimeAsync(COMMIT_MS_MAX + 60 - RESEND_MS - 60);
    expect([seen.state, log.sent.length]).toEqual(['upstream_unavailable', 2]);
    expect(log.forgotten).toEqual([log.at(0).id]);
  });

  test('the second send settles a request as well as the first', async () => {
    const seen = watched(publisher.publish([event('a')]));
    await vi.advanceTimersByTimeAsync(RESEND_MS + 60);
    log.at(1).settle(stored(1));
    log.at(0).settle(stored(1));
    await turn();
    expect(seen.state).toBe('stored');
    await publisher.flush();
  });

  test('a request behind an unanswered message is rejected at its own deadline, earlier waits included', async () => {
    void publisher.publish([event('a')]).catch(() => undefined);
    await turn();
    const waiting = watched(publisher.publish([event('b')], 500));
    await vi.advanceTimersByTimeAsync(COMMIT_MS_MAX - 500 + 60);
    expect(waiting.state).toBe('upstream_unavailable');
    log.at(0).settle(stored(1));
    await turn();
    expect(log.sent.flatMap(({ bodies }) => bodies)).not.toContain('b');
  });

  test('a request with one lost part fails once, and its other part is stored all the same', async () => {
    const seen = watched(publisher.publish([event('a', 0, OWN_MESSAGE_BYTES), event('b', 1, OWN_MESSAGE_BYTES)]));
    await turn();
    log.at(0).settle({ kind: 'failed', detail: 'x' });
    await turn();
    expect(seen.state).toBe('upstream_unavailable');
    log.at(1).settle(stored(1));
    await publisher.flush();
  });

  test('flush waits for the messages in flight', async () => {
    void publisher.publish([event('a')]);
    await turn();
    let flushed = false;
    const flushing = publisher.flush().then(() => (flushed = true));
    await vi.advanceTimersByTimeAsync(100);
    expect(flushed).toBe(false);
    log.at(0).settle(stored(1));
    await vi.advanceTimersByTimeAsync(100);
    await flushing;
    expect(flushed).toBe(true);
  });
});
