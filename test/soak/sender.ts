// The load of a soak run: mixed bodies at a steady pace, each sent until it is acknowledged,
// whatever is restarted meanwhile. So exactly the acknowledged events must have landed: the service
// recognises a repeated body.
import { randomInt } from 'node:crypto';
import { batchBody, Body, BATCH_EVENTS, MARK, singleBody } from '../bench/bodies.ts';
import { Lane, requestHead, type LaneTarget } from '../bench/lane.ts';
import { seededRandom, type Random, type Vocabulary } from '../bench/vocabulary.ts';

/** Requests of one kind: their share of the load, in events. */
interface Stream {
  format: string;
  events: number;
  share: number;
  lanes: number;
  make: (vocabulary: Vocabulary, random: Random) => Body;
}

const BODIES = 128;
const RETRY_MS = 200;
/** Time after the end when unacknowledged bodies are abandoned: they may have landed or not. */
const GIVE_UP_MS = 60_000;

const app = (vocabulary: Vocabulary, random: Random): Body => {
  const session = `ses_${MARK}`;
  const events = Array.from({ length: 5 }, (_, index) => ({
    event_type: ['page.view', 'click', 'request'][index % 3],
    session_id: session,
    user_id: `user_${random() % 3000}`,
    timestamp: new Date().toISOString(),
    attributes: { nonce: `${MARK}.${index}`, url: `/${vocabulary.words[random() % 1000] ?? ''}` },
  }));
  return new Body(JSON.stringify({ events }));
};

const message = (vocabulary: Vocabulary, random: Random): Body =>
  new Body(
    JSON.stringify({
      request: {
        model: 'claude-sonnet-4-5',
        max_tokens: 1024,
        messages: [{ role: 'user', content: vocabulary.text(120, random) }],
      },
      response: {
        id: 'msg_soak',
        type: 'message',
        role: 'assistant',
        model: 'claude-sonnet-4-5',
        content: [{ type: 'text', text: vocabulary.text(80, random) }],
        stop_reason: 'end_turn',
        usage: { input_tokens: 150 + (random() % 40), output_tokens: 90 + (random() % 40) },
      },
      duration_ms: 300 + (random() % 3000),
      outcome: random() % 40 === 0 ? 'error' : 'success',
      trace_id: `trc_${MARK}m`,
      span_id: `spn_${MARK}m`,
      attributes: { agent_id: `agent_${random() % 30}` },
    }),
  );

/** Three quarters in batches of model calls, the rest as single requests of each kind. */
export const STREAMS: readonly Stream[] = [
  {
    format: 'custom',
    events: BATCH_EVENTS,
    share: 0.6,
    lanes: 4,
    make: (vocabulary, random) => batchBody('texts', vocabulary, random),
  },
  {
    format: 'custom',
    events: BATCH_EVENTS,
    share: 0.3,
    lanes: 2,
    make: (vocabulary, random) => batchBody('plain', vocabulary, random),
  },
  { format: 'chatcompletion', events: 1, share: 0.06, lanes: 16, make: singleBody },
  { format: 'messages', events: 1, share: 0.03, lanes: 8, make: message },
  { format: 'app', events: 5, share: 0.01, lanes: 2, make: app },
];

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

export class Sender {
  readonly #target: LaneTarget;
  readonly #org: string;
  readonly #rate: number;
  readonly #vocabulary: Vocabulary;
  #running: Promise<void>[] = [];
  #stopAt = Infinity;
  #begun = 0;
  #stamp = randomInt(2 ** 38);
  /** Events answered 200. */
  acknowledged = 0;
  /** Unacknowledged attempts: rejected, or with a broken connection. */
  retries = 0;
  /** Events that were sent but never acknowledged. */
  abandoned = 0;
  /** Answers that a valid request must not get. */
  readonly faults: string[] = [];
  #latencies: number[] = [];

  constructor(options: { target: LaneTarget; org: string; rate: number; vocabulary: Vocabulary }) {
    this.#target = options.target;
    this.#org = options.org;
    this.#rate = options.rate;
    this.#vocabulary = options.vocabulary;
  }

  start(): void {
    this.#begun = performance.now();
    const random = seededRandom(41);
    this.#running = STREAMS.flatMap((stream) => {
      const bodies = Array.from({ length: stream.events === 1 ? BODIES * 8 : BODIES }, () =>
        stream.make(this.#vocabulary, random),
      );
      const taken = { count: 0 };
      return Array.from({ length: stream.lanes }, (_, index) =>
        this.#run(
          stream,
          bodies.filter((__, body) => body % stream.lanes === index),
          taken,
        ),
      );
    });
  }

  /** Returns the milliseconds to each acknowledgement since the last call. */
  takeLatencies(): number[] {
    const taken = this.#latencies;
    this.#latencies = [];
    return taken;
  }

  /** Ends once every body in flight is acknowledged or abandoned. */
  async stop(): Promise<void> {
    this.#stopAt = performance.now();
    await Promise.all(this.#running);
  }

  async #run(stream: Stream, bodies: readonly Body[], taken: { count: number }): Promise<void> {
    const path = `/orgs/${this.#org}/ingest/${stream.format}`;
    const heads = bodies.map((body) => requestHead(this.#target, 'POST', path, body.bytes.length));
    const connection = { lane: new Lane(this.#target) };
    for (let turn = 0; this.#stopAt === Infinity;) {
      const wait =
        (taken.count * stream.events * 1000) / (this.#rate * stream.share) - (performance.now() - this.#begun);
      if (wait > 0) {
        await pause(Math.min(wait, 50));
        continue;
      }
      taken.count += 1;
      const [body, head] = [bodies[turn % bodies.length], heads[turn % bodies.length]];
      turn += 1;
      if (body === undefined || head === undefined) return;
      body.stamp(this.#stamp++);
      await this.#deliver(connection, head, body, stream);
    }
    connection.lane.close();
  }

  async #deliver(connection: { lane: Lane }, head: Buffer, body: Body, { events, format }: Stream): Promise<void> {
    while (performance.now() - this.#stopAt < GIVE_UP_MS) {
      if (!connection.lane.usable) connection.lane = new Lane(this.#target);
      const began = performance.now();
      const status = await connection.lane.send(head, body.bytes).catch(() => 0);
      if (status === 200) {
        this.acknowledged += events;
        this.#latencies.push(performance.now() - began);
        return;
      }
      if (status >= 400 && status < 500 && status !== 429) {
        this.faults.push(`${format}: ${status}`);
        return;
      }
      if (status === 0) connection.lane.close();
      this.retries += 1;
      await pause(RETRY_MS);
    }
    this.abandoned += events;
  }
}
