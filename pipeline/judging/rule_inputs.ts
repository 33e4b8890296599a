// What judges will see of the open traces of one partition, gathered from the events that pass: only of orgs that have judges, and
// within a bound in bytes. What is not held is read back from the store when the trace is complete: `stored_through` says up to
// which message.
import { addToDraft, draftBytes, emptyDraft, type JudgedDraft } from '../domain/judging/judged_draft.ts';
import type { TraceState } from '../domain/traces/trace_state.ts';
import type { MeteredEvent } from '../stage.ts';

/** What a trace's judges have to look at, as far as it is in memory. */
export interface JudgedInput {
  /** Of the messages after stored_through; null where none came. */
  draft: JudgedDraft | null;
  /** What came up to this message lies in the store; 0 for nothing. */
  stored_through: number;
}

/** A trace that is complete and may be judged. */
export interface CompleteTrace extends JudgedInput {
  state: TraceState;
  /** log_seq of its newest message. */
  version: number;
  /** Taken over from a former owner, who may have judged it already. */
  restored: boolean;
}

interface Held {
  draft: JudgedDraft;
  stored_through: number;
  /** Newest message in the draft, and how many spans the trace had with it. */
  version: number;
  spans: number;
  bytes: number;
}

export class JudgedInputs {
  readonly #wants: (org_id: string) => boolean;
  readonly #bytesMax: number;
  readonly #held = new Map<string, Held>();
  #bytes = 0;

  /** @param wants whether an org has judges now */
  constructor(wants: (org_id: string) => boolean, bytesMax: number) {
    this.#wants = wants;
    this.#bytesMax = bytesMax;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /**
   * Takes an event of an open trace in.
   * @param before the trace as it stood before the event: its newest message, 0 for none, and its spans
   */
  add(key: string, before: { version: number; spans: number }, event: MeteredEvent): void {
    if (!this.#wants(event.org_id)) return;
    let held = this.#held.get(key);
    // Events that went by while the org had no judges are in the store: they came with an earlier batch.
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

  /** Lets go of a trace that is complete. @returns null when it is judged by nobody */
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
   * Back within the bound, oldest first: what lies in the store can be forgotten here.
   * @param landedThrough log_seq
   * @param isHeld whether tail sampling holds a trace: it has nothing in the store
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

/** Adds an event's spans to what judges will see. */
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
      attributes,
      attribute_bytes: span.storage_bytes,
    });
  }
}
