// A model of the pipeline from the log to the rows without servers, for property tests: the real
// stages, state and rebuild, over a log and tables in memory. A test may kill the owner after any
// step, with any part of its last landing in the tables.
import { createLogger } from '../../ops/platform/logger.ts';
import type { Span } from '../../pipeline/domain/traces/span.ts';
import { type LandingUnit, unitRows } from '../../pipeline/landing/lander.ts';
import { LandingLanes } from '../../pipeline/landing/landing_lanes.ts';
import { type CompleteTrace, JudgedInputs } from '../../pipeline/judging/rule_inputs.ts';
import { emptyMemory, type PartitionState, rebuild } from '../../pipeline/worker/partition_state.ts';
import { prepare, type PrepareDeps, type Prepared, type TakenMessage } from '../../pipeline/worker/prepare.ts';
import { createStageRunner } from '../../pipeline/worker/stage_runner.ts';
import type { StoredTrace } from '../../pipeline/traces/stored_trace.ts';
import { type TailLimits, TailSampler } from '../../pipeline/traces/tail_sampling.ts';
import { traceHash } from '../../pipeline/traces/trace_filter.ts';
import { startWith } from '../../pipeline/flow.ts';
import { createDedupeStage } from '../../pipeline/stages/dedupe.ts';
import { createMeterStage } from '../../pipeline/stages/meter.ts';
import { createSampleStage } from '../../pipeline/stages/sample.ts';
import { ingestBatchCodec } from '../../schemas/codec.ts';
import { SPAN_TEXTS, SPANS, USAGE_EVENTS } from '../../sql/stores/landing_tables.ts';
import { decisions, type ModelRow, type ModelTrace, ORG, spanRow, traceRow, valuesOf } from './model_rows.ts';
import { decode, silent } from './model_stages.ts';

export const MODEL_PARTITIONS = 3;
export const GRACE_MS = 100;
export const IDLE_MS = 1000;
export const SLOW_MS = 5000;

/** An event of the model: its trace, and the fields that its span overrides. */
export interface ModelEvent {
  /** The event's number, from which its id derives. */
  n: number;
  /** ORG if absent. */
  org_id?: string;
  trace_id: string;
  partition: number;
  span: Partial<
    Pick<Span, 'outcome' | 'parent_span_id' | 'name' | 'started_at' | 'ended_at' | 'prompt' | 'attributes'>
  >;
}

/**
 * Rows of a landing that are in the tables when the owner is killed: any subset of spans and
 * texts, and all or none of traces and of usage.
 */
export interface Cut {
  spans: readonly boolean[];
  texts: readonly boolean[];
  traces: boolean;
  usage: boolean;
}

interface Owner {
  states: Map<number, PartitionState>;
  deps: PrepareDeps;
  /** Sequence of the next message to read. */
  next: number;
  /** Batches that are not settled, oldest first. */
  unsettled: Pick<Prepared, 'bulk' | 'progress'>[];
}

const hexOf = (n: number): string => (n + 1).toString(16).padStart(16, '0');

export class TailModel {
  now = 1_000_000;
  readonly spans: ModelRow[] = [];
  readonly texts: ModelRow[] = [];
  readonly traces: ModelTrace[] = [];
  readonly usage: { partition: number; log_seq: number; events: number }[] = [];
  readonly completed = new Set<string>();
  /** Whether the organization has judges now. `judged` lists the traces that they received. */
  hasJudges = false;
  readonly judged: CompleteTrace[] = [];
  readonly #log: TakenMessage[] = [];
  readonly #records = new Map<number, { checkpoint: number; completed_through: number; epoch: number }>();
  readonly #limits: TailLimits;
  readonly #tail: boolean;
  readonly #bulkCost: number | null;
  #owner: Owner;

  /**
   * @param tail false: every event is decided separately, as without tail sampling
   * @param bulkCost cost from which on an organization lands in the bulk lane; null without lanes
   */
  constructor(limits: Partial<TailLimits> = {}, tail = true, bulkCost: number | null = null) {
    this.#tail = tail;
    this.#bulkCost = bulkCost;
    this.#limits = {
      slots: 1000,
      bytes: 1e9,
      traceBytes: 1e9,
      read: { events: 1e9, bytes: 1e9 },
      bufferMs: 1e9,
      slowMs: SLOW_MS,
      ...limits,
    };
    for (let partition = 0; partition < MODEL_PARTITIONS; partition += 1)
      this.#records.set(partition, { checkpoint: 0, completed_through: 0, epoch: 0 });
    this.#owner = this.#takeOver();
  }

  get isBehind(): boolean {
    return this.#owner.next <= this.#log.length;
  }

  get heldTraces(): number {
    return [...this.#owner.states.values()].reduce((sum, { tail }) => sum + tail.size, 0);
  }

  /** Returns the sequence that a checkpoint of the partition would record now. */
  settledThrough(partition: number): number {
    return this.#owner.states.get(partition)?.settled_through ?? NaN;
  }

  /** Publishes one message per partition. */
  publish(events: readonly ModelEvent[]): void {
    for (const [partition, batch] of Map.groupBy(events, (event) => event.partition)) {
      const data = ingestBatchCodec.encode({
        events: batch.map(({ n, org_id = ORG, trace_id, span }) => ({
          org_id,
          format: 'custom',
          event_hex: hexOf(n),
          trace_id,
          received_at: this.now,
          body: JSON.stringify({ started_at: this.now, ended_at: this.now, ...span }),
        })),
      });
      this.#log.push({
        partition,
        readers: [partition],
        position: this.#log.length + 1,
        data,
        fingerprint: ingestBatchCodec.fingerprint,
        partitions: new Set([partition]),
      });
    }
  }

  /**
   * Reads at most `messages` messages and lands their rows. With a cut, the owner is killed in the
   * middle of the landing.
   */
  async step(messages: number, cut: Cut | null = null): Promise<void> {
    const owner = this.#owner;
    const taken: TakenMessage[] = [];
    for (; taken.length < messages && owner.next <= this.#log.length; owner.next += 1) {
      const message = this.#log[owner.next - 1];
      const state = message?.partition == null ? undefined : owner.states.get(message.partition);
      if (message === undefined || state === undefined || state.taken_through >= message.position) continue;
      state.taken_through = message.position;
      taken.push(message);
    }
    const { rows, bulk, progress, events } = await prepare(owner.deps, owner.states, taken, async () => {
      while (this.bulkBatches > 0) this.landBulk();
      return Promise.resolve();
    });
    this.#land(rows, cut);
    if (cut !== null) {
      this.kill();
      return;
    }
    for (const { event, trace_id } of events) if (event === 'trace.completed') this.completed.add(trace_id);
    owner.unsettled.push({ bulk, progress });
    this.#settle();
  }

  /** Batches whose rows wait in the bulk lane. */
  get bulkBatches(): number {
    return this.#owner.unsettled.filter(({ bulk }) => bulk !== null).length;
  }

  /** Lands the oldest rows of the bulk lane. With a cut, the owner is killed in the middle of the landing. */
  landBulk(cut: Cut | null = null): void {
    const oldest = this.#owner.unsettled.find(({ bulk }) => bulk !== null);
    if (oldest?.bulk == null) return;
    this.#land(oldest.bulk.rows, cut);
    if (cut !== null) {
      this.kill();
      return;
    }
    this.#owner.deps.lanes?.landed(oldest.bulk.orgs);
    oldest.bulk = null;
    this.#settle();
  }

  #settle(): void {
    const { unsettled } = this.#owner;
    for (let first = unsettled[0]; first?.bulk === null; first = unsettled[0]) {
      for (const { state, landed_through, settled_through, completed_through } of first.progress)
        Object.assign(state, { landed_through, settled_through, completed_through });
      unsettled.shift();
    }
  }

  writeCheckpoints(): void {
    for (const { partition, settled_through, completed_through } of this.#owner.states.values()) {
      const record = this.#records.get(partition);
      if (record !== undefined) Object.assign(record, { checkpoint: settled_through, completed_through });
    }
  }

  kill(): void {
    this.#owner = this.#takeOver();
  }

  /** Reads the rest of the log and completes every trace. */
  async finish(): Promise<void> {
    while (this.isBehind) await this.step(5);
    this.now += 10 * IDLE_MS;
    await this.step(0);
    while (this.bulkBatches > 0) this.landBulk();
    this.writeCheckpoints();
  }

  #land(rows: LandingUnit, cut: Cut | null): void {
    const any = (flags: readonly boolean[] | undefined) => (_: unknown, at: number) =>
      flags === undefined || flags[at % flags.length] === true;
    this.spans.push(
      ...unitRows(rows, 'spans')
        .filter(any(cut?.spans))
        .map((row) => spanRow(SPANS, row)),
    );
    this.texts.push(
      ...unitRows(rows, 'span_texts_recent')
        .filter(any(cut?.texts))
        .map((row) => spanRow(SPAN_TEXTS, row)),
    );
    if (cut?.traces !== false) this.traces.push(...rows.traces.map(traceRow));
    if (cut?.usage !== false)
      for (const { wire, partition, log_seq } of rows.usage_events)
        this.usage.push({ partition, log_seq, events: Number(valuesOf(USAGE_EVENTS, wire)['events']) });
  }

  #takeOver(): Owner {
    const states = new Map<number, PartitionState>();
    for (const [partition, record] of this.#records) {
      record.epoch += 1;
      states.set(partition, this.#rebuilt(partition, record));
    }
    const deps: PrepareDeps = {
      topology: startWith(decode)
        .followedBy(
          createDedupeStage({
            forgottenOf: () => null,
            windowOf: (partition) => {
              const state = states.get(partition);
              if (state === undefined) throw new Error('a partition that nobody owns');
              return state.window;
            },
            findLanded: () => Promise.resolve(new Set()),
            now: () => this.now,
          }),
        )
        .followedBy(createSampleStage({ profile: 'balanced', enabled: true, slowMs: this.#limits.slowMs }))
        .followedBy(createMeterStage()),
      runner: createStageRunner(silent, createLogger('test', 'silent')),
      tail: this.#tail ? new TailSampler(this.#limits) : null,
      lanes: this.#bulkCost === null ? null : new LandingLanes(() => this.now, this.#bulkCost),
      observer: silent,
      logBase: 0,
      partitions: MODEL_PARTITIONS,
      streams: () => [{ name: 'INGEST', partitions: [...states.keys()], isBehind: this.isBehind }],
      textDays: () => 30,
      isDeleted: () => false,
      findTraces: (partition, traces) => {
        const isWanted = ({ state }: StoredTrace) => traces.some(({ trace_id }) => trace_id === state.trace_id);
        return Promise.resolve(this.#liveTraces(partition).filter(isWanted));
      },
      findCorrections: () => Promise.resolve(new Map()),
      judge: (traces) => {
        this.judged.push(...traces);
        return Promise.resolve([]);
      },
      now: () => this.now,
      yield: () => Promise.resolve(),
    };
    return {
      states,
      deps,
      next: 1 + Math.min(...[...this.#records.values()].map(({ checkpoint }) => checkpoint)),
      unsettled: [],
    };
  }

  #rebuilt(
    partition: number,
    record: { checkpoint: number; completed_through: number; epoch: number },
  ): PartitionState {
    const memory = emptyMemory(86_400_000, 1_000_000);
    const above = (row: ModelRow): boolean => row.partition === partition && row.log_seq > record.checkpoint;
    const mine = this.spans.filter((row) => row.partition === partition);
    for (const { hex, log_seq } of mine)
      if (log_seq <= record.checkpoint)
        memory.id(Number.parseInt(hex.slice(0, 8), 16), Number.parseInt(hex.slice(8), 16), this.now);
    const live = this.#liveTraces(partition);
    for (const { state } of live) memory.trace(traceHash(state.org_id, state.trace_id));
    const history = {
      spans: new Set(this.spans.filter(above).map(({ key }) => key)),
      texts: new Set(this.texts.filter(above).map(({ key }) => key)),
      usage_through: Math.max(
        0,
        ...this.usage.filter((row) => row.partition === partition).map(({ log_seq }) => log_seq),
      ),
      decided: decisions([...this.spans.filter(above), ...this.texts.filter(above)]),
      traces: live
        .filter(({ version }) => version > record.completed_through)
        .toSorted((a, b) => a.version - b.version),
    };
    const bounds = { openMax: 1000, doneMax: 3, callIdsMax: 100, judgedFromStoreMax: 1000 };
    const at = { partition, owner: '', at: '', ...record };
    return rebuild(at, history, memory, {
      logBase: 0,
      limits: { graceMs: GRACE_MS, idleMs: IDLE_MS, ...bounds },
      inputs: new JudgedInputs(() => this.hasJudges, 0),
      now: this.now,
    });
  }

  #liveTraces(partition: number): StoredTrace[] {
    const newest = new Map<string, StoredTrace>();
    for (const { trace, sign, partition: of } of this.traces) {
      if (of !== partition || sign !== 1) continue;
      const known = newest.get(trace.state.trace_id);
      if (known === undefined || known.version <= trace.version)
        newest.set(trace.state.trace_id, structuredClone(trace));
    }
    return [...newest.values()];
  }
}
