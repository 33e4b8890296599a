// Gathers what judges need of the open traces of one partition from the events that pass, for
// organizations with judges, within a bound in bytes. What is not held is read back from the store
// when the trace is complete: `stored_through` says up to which message. Only what has landed is
// ever dropped.
import { addToDraft, draftBytes, emptyDraft, type JudgedDraft } from '../domain/judging/judged_draft.ts';
import type { TraceState } from '../domain/traces/trace_state.ts';
import type { MeteredEvent } from '../stage.ts';

/** The part of a trace's judged input that is in memory. */
export interface JudgedInput {
  /** Input from the messages after stored_through; null when there were none. */
  draft: JudgedDraft | null;
  /** log_seq of the newest message whose input must be read from the store; 0 for none. */
  stored_through: number;
}

/** A complete trace that may be judged. */
export interface CompleteTrace extends JudgedInput {
  partition: number;
  state: TraceState;
  /** log_seq of its newest message. */
  version: number;
  /** True when the trace was taken over from a former owner, which may have judged it already. */
  restored: boolean;
}

interface HeldInputs {
  draft: JudgedDraft;
  stored_through: number;
  /** log_seq of the newest message in the draft, and the number of the trace's spans with it. */
  version: number;
  spans: number;
  bytes: number;
}

export class JudgedInputs {
  readonly #wants: (org_id: string) => boolean;
  readonly #bytesMax: number;
  readonly #held = new Map<string, HeldInputs>();
  #bytes = 0;

  /** @param wants returns true while an organization has judges */
  constructor(wants: (org_id: string) => boolean, bytesMax: number) {
    this.#wants = wants;
    this.#bytesMax = bytesMax;
  }

  /** Returns whether an organization has judges. */
  wants(org_id: string): boolean {
    return this.#wants(org_id);
  }

  get bytes(): number {
    return this.#bytes;
  }

  /**
   * Adds an event of an open trace.
   * @param before the trace before the event: log_seq of its newest message, 0 for none, and its
   * number of spans
   */
  add(key: string, before: { version: number; spans: number }, event: MeteredEvent): void {
    if (!this.#wants(event.org_id)) return;
    let held = this.#held.get(key);
    // Events that passed while the organization had no judges are in the store: they came with an
    // earlier batch.
    if (held?.spans !== before.spans) {
      if (held !== undefined) this.#bytes -= held.bytes;
      held = { draft: emptyDraft(), stored_through: before.version, version: 0, spans: before.spans, bytes: 0 };
      this.#held.set(key, held);
    }
    addEvent(held.draft, event);
    held.version = event.log_seq;
    held.spans += event.spans.length;
    const bytes = draftBytes(held.draft);
    this.#bytes += bytes - held.bytes;
    held.bytes = bytes;
  }

  /**
   * Removes a complete trace and returns its input, or null when the organization has no judges.
   */
  take(key: string, org_id: string, version: number): JudgedInput | null {
    const held = this.#held.get(key);
    if (held !== undefined) {
      this.#held.delete(key);
      this.#bytes -= held.bytes;
    }
    if (!this.#wants(org_id)) return null;
    return held === undefined
      ? { draft: null, stored_through: version }
      : { draft: held.draft, stored_through: held.stored_through };
  }

  /**
   * Drops the oldest traces until the bound holds; only those whose events have landed can be
   * dropped.
   * @param landedThrough log_seq
   * @param isHeld returns true for a trace that tail sampling holds: the store has nothing of it
   */
  trim(landedThrough: number, isHeld: (key: string) => boolean = () => false): void {
    if (this.#bytes <= this.#bytesMax) return;
    for (const [key, held] of this.#held) {
      if (this.#bytes <= this.#bytesMax) return;
      if (held.version > landedThrough || isHeld(key)) continue;
      this.#held.delete(key);
      this.#bytes -= held.bytes;
    }
  }
}

/** Adds an event's spans to a draft. */
export function addEvent(draft: JudgedDraft, event: MeteredEvent): void {
  for (const [sub, span] of event.spans.entries()) {
    const { started_at, ended_at, kind, model, source_format, prompt, response, attributes } = span;
    addToDraft(draft, {
      place: [event.log_seq, event.log_index, sub],
      started_at,
      ended_at,
      is_root: span.parent_span_id === '',
      kind,
      model,
      source_format,
      prompt,
      response,
      record: span.record,
      parent_span_id: span.parent_span_id,
      name: span.name,
      attributes,
      attribute_bytes: span.storage_bytes,
    });
  }
}
