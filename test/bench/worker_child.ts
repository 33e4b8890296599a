// Prepares and encodes batches of events as a worker does, without a log and without a store, in a
// process of its own. Out: one message to its parent with the CPU time of an event and its memory.
import { createPriceBook } from '../../pipeline/domain/pricing/pricing.ts';
import { startWith } from '../../pipeline/flow.ts';
import { JudgedInputs } from '../../pipeline/judging/rule_inputs.ts';
import { Lander, type LandingStore } from '../../pipeline/landing/lander.ts';
import { LandingLanes } from '../../pipeline/landing/landing_lanes.ts';
import type { LandingPiece } from '../../pipeline/landing/landing_piece.ts';
import { LIMITS } from '../../pipeline/limits.ts';
import { createDecodeStage } from '../../pipeline/stages/decode.ts';
import { createDedupeStage } from '../../pipeline/stages/dedupe.ts';
import { createMeterStage } from '../../pipeline/stages/meter.ts';
import { createSampleStage } from '../../pipeline/stages/sample.ts';
import { emptyMemory, type PartitionState, rebuild } from '../../pipeline/worker/partition_state.ts';
import { prepare, type PrepareDeps, type TakenMessage } from '../../pipeline/worker/prepare.ts';
import { createStageRunner } from '../../pipeline/worker/stage_runner.ts';
import { createLogger } from '../../ops/platform/logger.ts';
import { ingestBatchCodec } from '../../schemas/codec.ts';
import { silent } from '../support/model_stages.ts';
import { BATCH_EVENTS, batchBody, type Body } from './bodies.ts';
import { percentile } from './report.ts';
import { seededRandom, Vocabulary } from './vocabulary.ts';

/** The numbers sent to the parent. */
export interface WorkerNumbers {
  events: number;
  /** CPU time of an event by batch, in microseconds, with that of the collector's threads. */
  cpu_us: number[];
  /** Resident memory at the end. */
  rss_bytes: number;
  /** Bytes of an event on its way to the store. */
  wire_bytes: number;
}

const PARTITIONS = 16;
const BODIES = 64;
const BATCHES = 24;
/** Batches of compilation, which are not counted. */
const WARM_BATCHES = 8;
/** Time that the store would take for an insert, in milliseconds: rows of two batches are in memory. */
const INSERT_MS = 60;
const EPOCH = 1;
const TRACE = {
  graceMs: 1000,
  idleMs: 30_000,
  openMax: LIMITS.open_traces_max,
  doneMax: LIMITS.done_traces_max,
  judgedFromStoreMax: LIMITS.judged_from_store_max,
  callIdsMax: LIMITS.call_ids_max,
};

const logger = createLogger('bench', 'warn');

/** Takes the bytes of every landing. */
class NoStore implements LandingStore {
  bytes = 0;

  async insert(_: unknown, piece: LandingPiece): Promise<void> {
    const body = piece.body();
    this.bytes += typeof body === 'string' ? body.length : body.reduce((sum, { length }) => sum + length, 0);
    await new Promise((resolve) => setTimeout(resolve, INSERT_MS));
  }

  end = (): Promise<void> => Promise.resolve();
  landedKeys = (): Promise<ReadonlySet<string>> => Promise.resolve(new Set<string>());
  repairLookup = (): Promise<void> => Promise.resolve();
  fencedOff = (): Promise<number[]> => Promise.resolve([]);
  classify = (): 'refused' => 'refused';
}

function emptyStates(): Map<number, PartitionState> {
  const states = new Map<number, PartitionState>();
  for (let partition = 0; partition < PARTITIONS; partition += 1) {
    const record = { partition, owner: '', at: '', checkpoint: 0, completed_through: 0, epoch: EPOCH };
    const history = {
      spans: new Set<string>(),
      texts: new Set<string>(),
      usage_through: 0,
      decided: new Map(),
      traces: [],
    };
    const memory = emptyMemory(86_400_000, LIMITS.dedupe_ids_exact_max);
    const inputs = new JudgedInputs(() => false, 0);
    states.set(partition, rebuild(record, history, memory, { logBase: 0, limits: TRACE, inputs, now: Date.now() }));
  }
  return states;
}

function depsOf(states: ReadonlyMap<number, PartitionState>): PrepareDeps {
  const windowOf = (partition: number): PartitionState['window'] => {
    const state = states.get(partition);
    if (state === undefined) throw new Error(`partition ${partition} has no state`);
    return state.window;
  };
  return {
    topology: startWith(
      createDecodeStage({ prices: createPriceBook(() => []), maxPromptTokens: () => null, redactorOf: () => null }),
    )
      .followedBy(
        createDedupeStage({
          forgottenOf: () => null,
          windowOf,
          findLanded: () => Promise.resolve(new Set()),
          now: Date.now,
        }),
      )
      .followedBy(createSampleStage({ profile: 'full', enabled: false, slowMs: 0 }))
      .followedBy(createMeterStage()),
    runner: createStageRunner(silent, logger),
    tail: null,
    lanes: new LandingLanes(),
    observer: silent,
    logBase: 0,
    partitions: PARTITIONS,
    streams: () => [{ name: 'INGEST', partitions: [...states.keys()], isBehind: false }],
    textDays: () => 30,
    isDeleted: () => false,
    findTraces: () => Promise.resolve([]),
    findCorrections: () => Promise.resolve(new Map()),
    judge: () => Promise.resolve([]),
    now: Date.now,
    yield: () => new Promise((resolve) => setImmediate(resolve)),
  };
}

/** Yields batches of whole messages of 200 events, each of the size of a landing. */
function* batches(): Generator<TakenMessage[]> {
  const random = seededRandom(7);
  const vocabulary = new Vocabulary();
  const bodies = Array.from({ length: BODIES }, () => batchBody('texts', vocabulary, random));
  const partitions = new Set(Array.from({ length: PARTITIONS }, (_, partition) => partition));
  for (let position = 0; ;) {
    const messages: TakenMessage[] = [];
    for (let bytes = 0; bytes < LIMITS.batch_bytes_max;) {
      position += 1;
      const data = messageOf(position, bodies);
      const { fingerprint } = ingestBatchCodec;
      messages.push({ position, partition: null, fingerprint, partitions, readers: [...partitions], data });
      bytes += data.length;
    }
    yield messages;
  }
}

function messageOf(position: number, bodies: readonly Body[]): Uint8Array {
  const body = bodies[position % bodies.length];
  if (body === undefined) throw new Error('there are no bodies');
  body.stamp(position);
  const { events } = JSON.parse(body.bytes.toString('latin1')) as { events: { trace_id: string }[] };
  return ingestBatchCodec.encode({
    events: events.map((event, index) => ({
      org_id: 'org_bench',
      format: 'custom',
      event_hex: (position * BATCH_EVENTS + index).toString(16).padStart(16, '0'),
      trace_id: event.trace_id,
      received_at: Date.now(),
      body: JSON.stringify(event),
    })),
  });
}

async function measure(): Promise<WorkerNumbers> {
  const states = emptyStates();
  const deps = depsOf(states);
  const store = new NoStore();
  const owned = [...states.keys()].map((partition) => [partition, EPOCH] as const);
  const lander = new Lander({
    store,
    workerId: 'bench',
    logger,
    owned: () => owned,
    onFenced: () => undefined,
    observe: () => undefined,
  });
  const cpu: number[] = [];
  let events = 0;
  let landing = Promise.resolve<unknown>(undefined);
  for (const messages of batches().take(BATCHES)) {
    // Messages are made outside of the measurement, in which the landing before them goes on.
    const before = process.cpuUsage();
    const prepared = await prepare(deps, states, messages, async () => {
      await landing;
    });
    await landing;
    landing = lander.land(prepared.rows);
    const { user, system } = process.cpuUsage(before);
    if (prepared.deadLetters.length > 0) throw new Error(prepared.deadLetters[0]?.dead.detail);
    cpu.push((user + system) / prepared.count);
    events += prepared.count;
  }
  await landing;
  return {
    events,
    cpu_us: cpu.slice(WARM_BATCHES),
    rss_bytes: process.memoryUsage.rss(),
    wire_bytes: store.bytes / events,
  };
}

const numbers = await measure();
if (process.send === undefined) console.log({ ...numbers, cpu_us: percentile(numbers.cpu_us, 0.5) });
else process.send(numbers, () => process.exit(0));
