// The rows of decided events: those of their spans, and those of the texts of spans that are stored
// in full. A replayed event gets only the rows that have not landed.
import { SPANS, SPAN_TEXTS } from '../../sql/stores/landing_tables.ts';
import type { LoggedEvent, MeteredEvent } from '../stage.ts';
import type { LandingEvent } from '../traces/tail_buffer.ts';
import type { PartitionState } from '../worker/partition_state.ts';
import type { StageObserver } from '../worker/stage_runner.ts';
import type { LandingUnit } from './lander.ts';
import { BlockBuilder, type EventOf } from './landing_block.ts';
import { eventKey, rowKey } from './landing_row.ts';
import { spanCells, textCells } from './row_encoders.ts';

export interface SpanRowsDeps {
  states: ReadonlyMap<number, PartitionState>;
  /** Returns the days for which an organization's texts are kept. */
  textDays(orgId: string): number;
  observer: Pick<StageObserver, 'sampled'>;
  /** Receives the events of earlier batches, by eventKey, for eventOf. */
  held: Map<string, LoggedEvent>;
  eventOf: EventOf;
  /** Returns what receives the rows of an organization: one of a few. */
  unitOf(orgId: string): LandingUnit;
}

/** The rows of one unit that are not encoded yet. */
interface OpenRows {
  spans: BlockBuilder;
  texts: BlockBuilder;
}

export class SpanRows {
  readonly #deps: SpanRowsDeps;
  readonly #open = new Map<LandingUnit, OpenRows>();
  #counts = new Map<string, Pick<MeteredEvent, 'retain' | 'sample_reason'> & { count: number }>();

  constructor(deps: SpanRowsDeps) {
    this.#deps = deps;
  }

  add({ event, source, wasBuffered }: LandingEvent): void {
    const { partition, log_seq, log_index, retain } = event;
    const state = this.#deps.states.get(partition);
    if (state === undefined) return;
    if (wasBuffered === true && source !== null) this.#deps.held.set(eventKey(event), source);
    const { replay, epoch } = state;
    const full = retain === 'full';
    const days = this.#deps.textDays(event.org_id);
    const { spans, texts } = this.#rowsOf(this.#deps.unitOf(event.org_id));
    for (const [sub, span] of event.spans.entries()) {
      const key = replay === null ? '' : rowKey(log_seq, log_index, sub);
      if (replay?.spans.has(key) !== true) spans.add(spanCells(span, event, sub, full), partition, epoch);
      if (!full || replay?.texts.has(key) === true) continue;
      const cells = textCells(span, event, sub, days);
      if (cells !== null) texts.add(cells, partition, epoch);
    }
    this.#count(event);
  }

  /** Encodes what was added since the last call. */
  close(): void {
    const { observer } = this.#deps;
    for (const [unit, open] of this.#open) {
      const spans = open.spans.take();
      const texts = open.texts.take();
      unit.blocks.push(...spans.blocks, ...texts.blocks);
      unit.spans.push(...spans.rows);
      unit.span_texts_recent.push(...texts.rows);
    }
    for (const { retain, sample_reason, count } of this.#counts.values())
      observer.sampled(retain, sample_reason, count);
    this.#counts = new Map();
  }

  #rowsOf(unit: LandingUnit): OpenRows {
    const known = this.#open.get(unit);
    if (known !== undefined) return known;
    const { eventOf } = this.#deps;
    const open = { spans: new BlockBuilder(SPANS, eventOf), texts: new BlockBuilder(SPAN_TEXTS, eventOf) };
    this.#open.set(unit, open);
    return open;
  }

  #count({ retain, sample_reason }: MeteredEvent): void {
    const key = `${retain} ${sample_reason}`;
    const counted = this.#counts.get(key);
    if (counted === undefined) this.#counts.set(key, { retain, sample_reason, count: 1 });
    else counted.count += 1;
  }
}
