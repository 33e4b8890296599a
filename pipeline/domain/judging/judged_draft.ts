// What judges will see of a trace, gathered span by span while it is open: of each rule of judged_trace.ts the span that leads so
// far. Pure. Spans may come in any order, and some from memory, some from the store, whose texts are fetched when it is known
// which are needed; the result is the same.
import type { JudgedTrace } from './judged_trace.ts';
import type { SpanKind } from '../traces/span.ts';
import { durationMs, type TraceState } from '../traces/trace_state.ts';

/** Place of a span in the log of its partition: log_seq, log_index, log_sub. */
export type SpanPlace = readonly [number, number, number];

/** A text, or null for one that lies in the store and is not empty. */
export type DraftText = string | null;

/** What a draft asks of a span. Times are milliseconds since the epoch. */
export interface DraftSpan {
  place: SpanPlace;
  started_at: number;
  ended_at: number;
  is_root: boolean;
  kind: SpanKind;
  model: string;
  source_format: string;
  prompt: DraftText;
  response: DraftText;
  /** Null for those that lie in the store. */
  attributes: Readonly<Record<string, unknown>> | null;
  /** Bytes that the attributes take at most. */
  attribute_bytes: number;
}

/** A span that leads in one respect, with the one text for which it does. */
interface Lead {
  span: Pick<DraftSpan, 'place' | 'started_at' | 'ended_at' | 'model'>;
  text: DraftText;
}

interface Head {
  place: SpanPlace;
  started_at: number;
  model: string;
  source_format: string;
  prompt: DraftText;
  response: DraftText;
  attributes: DraftSpan['attributes'];
  attribute_bytes: number;
}

/** Gathered so far; every field is null while no span of its kind has come. */
export interface JudgedDraft {
  root: Head | null;
  first: Pick<Head, 'place' | 'started_at' | 'source_format' | 'attributes' | 'attribute_bytes'> | null;
  call_prompt: Lead | null;
  any_prompt: Lead | null;
  call_response: Lead | null;
  any_response: Lead | null;
}

export function emptyDraft(): JudgedDraft {
  return { root: null, first: null, call_prompt: null, any_prompt: null, call_response: null, any_response: null };
}

const comparePlaces = (a: SpanPlace, b: SpanPlace): number => a[0] - b[0] || a[1] - b[1] || a[2] - b[2];

type Started = Pick<DraftSpan, 'place' | 'started_at'>;
type Ended = Pick<DraftSpan, 'place' | 'ended_at'>;

/** Whether a begins before b; of two that begin at once, the one that came first. */
const isEarlier = (a: Started, b: Started): boolean =>
  a.started_at < b.started_at || (a.started_at === b.started_at && comparePlaces(a.place, b.place) < 0);
/** Whether a ends after b; of two that end at once, the one that came last. */
const isLater = (a: Ended, b: Ended): boolean =>
  a.ended_at > b.ended_at || (a.ended_at === b.ended_at && comparePlaces(a.place, b.place) > 0);

/** Adds a span in place. */
export function addToDraft(draft: JudgedDraft, span: DraftSpan): void {
  const { place, started_at, ended_at, model, source_format, attributes, attribute_bytes } = span;
  if (draft.first === null || isEarlier(span, draft.first))
    draft.first = { place, started_at, source_format, attributes, attribute_bytes };
  if (span.is_root && (draft.root === null || isEarlier(span, draft.root))) {
    const { prompt, response } = span;
    draft.root = { place, started_at, model, source_format, prompt, response, attributes, attribute_bytes };
  }
  const lead = { place, started_at, ended_at, model };
  if (span.prompt !== '') {
    if (draft.any_prompt === null || isEarlier(span, draft.any_prompt.span))
      draft.any_prompt = { span: lead, text: span.prompt };
    if (span.kind === 'llm' && (draft.call_prompt === null || isEarlier(span, draft.call_prompt.span)))
      draft.call_prompt = { span: lead, text: span.prompt };
  }
  if (span.response !== '') {
    if (draft.any_response === null || isLater(span, draft.any_response.span))
      draft.any_response = { span: lead, text: span.response };
    if (span.kind === 'llm' && (draft.call_response === null || isLater(span, draft.call_response.span)))
      draft.call_response = { span: lead, text: span.response };
  }
}

const FRAME_BYTES = 800;

/** Bytes of memory that a draft takes at most: two for each character of the texts that lead, and the attributes of root and first. */
export function draftBytes({ root, first, call_prompt, any_prompt, call_response, any_response }: JudgedDraft): number {
  const place = root?.place;
  let chars = (root?.prompt?.length ?? 0) + (root?.response?.length ?? 0) + (root?.attribute_bytes ?? 0);
  // A span leads in more than one respect: its text is there once.
  if (first !== null && first.place !== place) chars += first.attribute_bytes;
  chars += leadChars(any_prompt, place) + leadChars(any_response, place);
  chars +=
    leadChars(call_prompt, place, any_prompt?.span.place) + leadChars(call_response, place, any_response?.span.place);
  return FRAME_BYTES + 2 * chars;
}

const leadChars = (lead: Lead | null, ...counted: (SpanPlace | undefined)[]): number =>
  lead === null || counted.includes(lead.span.place) ? 0 : (lead.text?.length ?? 0);

/** A text that judges will see: the text, or the place of the span in the store that has it. */
export type FoundText = string | { stored: SpanPlace };

export interface DraftFinding {
  prompt: FoundText;
  response: FoundText;
  model: string;
  source_format: string;
  /** `stored` where they have to be fetched. */
  attributes: { stored: SpanPlace } | { known: Readonly<Record<string, unknown>> };
}

const found = (text: DraftText, place: SpanPlace): FoundText => text ?? { stored: place };

/** What the spans gathered so far come to. */
export function findingOf(draft: JudgedDraft): DraftFinding {
  const { root } = draft;
  const head = root ?? draft.first;
  const prompt = draft.call_prompt ?? draft.any_prompt;
  const response = draft.call_response ?? draft.any_response;
  const rootAnswers = root !== null && root.response !== '';
  return {
    prompt:
      root !== null && root.prompt !== ''
        ? found(root.prompt, root.place)
        : prompt === null
          ? ''
          : found(prompt.text, prompt.span.place),
    response: rootAnswers
      ? found(root.response, root.place)
      : response === null
        ? ''
        : found(response.text, response.span.place),
    model: rootAnswers ? root.model : (response?.span.model ?? ''),
    source_format: head?.source_format ?? '',
    attributes:
      head === null ? { known: {} } : head.attributes === null ? { stored: head.place } : { known: head.attributes },
  };
}

/** The trace as judges see it, once every text is at hand. */
export function judgedTraceOf(
  state: TraceState,
  texts: Pick<JudgedTrace, 'prompt' | 'response' | 'model' | 'source_format' | 'attributes'>,
): JudgedTrace {
  return {
    org_id: state.org_id,
    trace_id: state.trace_id,
    agent_id: state.agent_id,
    name: state.root_span_name,
    outcome: state.outcome,
    tags: state.tags,
    started_at: state.started_at,
    duration_ms: durationMs(state),
    input_tokens: state.input_tokens,
    output_tokens: state.output_tokens,
    cost_usd: Number(state.cost_pico_usd) / 1e12,
    ...texts,
  };
}
