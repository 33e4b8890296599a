// The noisy neighbour of `bench neighbours` as a process of its own, so that its work delays no
// measured request. In: one NeighbourTask by IPC, then 'stop'. Out: 'begun', and at the end its
// result.
import { randomInt } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { AckInbox } from '../../api/intake/ingest/ack_inbox.ts';
import { connectNats, trackConnected } from '../../ops/platform/nats/connect.ts';
import { die } from '../../ops/platform/leave.ts';
import { ingestSubject } from '../../schemas/streams.ts';
import { ingestBatchCodec, type IngestEvent } from '../../schemas/codec.ts';
import type { Body } from './bodies.ts';
import { Lane, requestHead, type LaneTarget } from './lane.ts';
import { noiseOf, type Noise, type NoiseName } from './neighbour_noise.ts';
import { Vocabulary } from './vocabulary.ts';

export interface NeighbourTask {
  noise: NoiseName;
  lane: LaneTarget;
  org: string;
  natsUrl: string;
}

export interface NeighbourResult {
  /** Events that were answered 200, or stored in the log. */
  accepted: number;
  /** Requests by status; 0 for a broken connection. */
  statuses: Record<string, number>;
}

/** A pause shorter than requested, as a bad neighbour would make it. */
const REFUSED_REST_MS = 10;
const LOG_PAUSE_MS = 100;

let stamp = randomInt(2 ** 38);
class Neighbour {
  readonly #task: NeighbourTask;
  readonly #result: NeighbourResult = { accepted: 0, statuses: {} };
  readonly #began = performance.now();
  #taken = 0;
  stopped = false;

  constructor(task: NeighbourTask) {
    this.#task = task;
  }

  async run(): Promise<NeighbourResult> {
    const noise = noiseOf(this.#task.noise, new Vocabulary(20_000));
    process.send?.('begun');
    if (noise.events === undefined)
      await Promise.all(Array.from({ length: noise.lanes }, (_, index) => this.#send(noise, index)));
    else await this.#write(noise.events);
    return this.#result;
  }

  #count(status: number, events: number): void {
    this.#result.statuses[String(status)] = (this.#result.statuses[String(status)] ?? 0) + 1;
    if (status === 200) this.#result.accepted += events;
  }

  /** Sends as fast as it is answered, or at the noise's pace. */
  async #send(noise: Noise, index: number): Promise<void> {
    const { lane: target, org } = this.#task;
    const bodies: readonly Body[] = noise.bodies.filter(
      (_, body) => body % noise.lanes === index % noise.bodies.length,
    );
    const heads = bodies.map((body) =>
      requestHead(target, 'POST', `/orgs/${org}/ingest/${noise.format}`, body.bytes.length),
    );
    let lane = new Lane(target);
    for (let turn = 0; !this.stopped; turn += 1) {
      const wait =
        noise.rate === Infinity
          ? 0
          : (this.#taken * noise.bodyEvents * 1000) / noise.rate - (performance.now() - this.#began);
      if (wait > 0) {
        await pause(Math.min(wait, 50));
        continue;
      }
      this.#taken += 1;
      const [body, head] = [bodies[turn % bodies.length], heads[turn % bodies.length]];
      if (body === undefined || head === undefined) return;
      body.stamp(stamp++);
      if (!lane.usable) lane = new Lane(target);
      const status = await lane.send(head, Buffer.from(body.bytes)).catch(() => 0);
      this.#count(status, noise.bodyEvents);
      if (status !== 200) await pause(REFUSED_REST_MS);
    }
    lane.close();
  }

  /** Writes straight into the log, like a sender whose events the API admitted. */
  async #write(eventsOf: (org: string, number: number) => IngestEvent[]): Promise<void> {
    const nc = await connectNats({ url: this.#task.natsUrl, name: 'bench-neighbour', waitMs: 5000 });
    const inbox = new AckInbox(nc, trackConnected(nc), (_stream, seq) => seq);
    for (let message = 0; !this.stopped; message += 1) {
      const events = eventsOf(this.#task.org, stamp++);
      const id = `neighbour${stamp}`;
      inbox.publish(id, ingestSubject(message % 2), ingestBatchCodec.encode({ events }), ({ kind }) => {
        this.#count(kind === 'stored' ? 200 : 502, events.length);
      });
      await pause(LOG_PAUSE_MS);
    }
    await nc.flush();
    await nc.close();
  }
}

let neighbour: Neighbour | null = null;
process.on('message', (message: NeighbourTask | 'stop') => {
  if (message === 'stop') {
    if (neighbour !== null) neighbour.stopped = true;
    return;
  }
  neighbour = new Neighbour(message);
  void neighbour.run().then((result) => process.send?.(result, die));
});
process.on('disconnect', die);
