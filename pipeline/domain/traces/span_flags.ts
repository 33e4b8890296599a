// Bits of the column spans.flags: facts about a span that lists and trees show without reading its
// texts or attributes. Landing writes them, the API and the portal's browser code read them, so this
// module imports nothing. Bits are never reused: stored rows keep their meaning.

export const SPAN_FLAGS = {
  /** Set on every span that landed since the column exists. A span without it has no known bits. */
  recorded: 1,
  /** The span landed with a prompt or a response. Retention may have removed the texts since. */
  has_texts: 1 << 1,
  /** The span had a prompt or a response, and sampling stored only its numbers. */
  texts_sampled_out: 1 << 2,
  /** The client reported no token counts, so the service estimated them. */
  usage_estimated: 1 << 3,
  /** The span used tokens of a model that has no price, so its cost is 0. */
  price_missing: 1 << 4,
  /** The service made this model call for an LLM judge. */
  judge_call: 1 << 5,
  /** The span belongs to the replay of another trace. */
  replay: 1 << 6,
  /** The span belongs to the run of a dataset. */
  dataset_run: 1 << 7,
  /** The prompt was longer than the organization's limit and was truncated. */
  prompt_truncated: 1 << 8,
  /** Personal data was redacted from the span. */
  redacted: 1 << 9,
  /** The client sent no times of its own for this step of a chain, so the service derived them. */
  times_estimated: 1 << 10,
  /** The row is a log record whose texts are messages of the parent span. */
  message_record: 1 << 11,
  /** The row is a log record whose text no model was asked and none answered. */
  line_record: 1 << 12,
  /** Another span counts the same model call, so this one has no tokens and no cost. */
  duplicate: 1 << 13,
  /** The span counts its model call in place of other spans, which are duplicates from then on. */
  replaces: 1 << 14,
} as const;

export type SpanFlag = keyof typeof SPAN_FLAGS;

/** Returns true when a span has a flag. Spans without `recorded` have none. */
export const hasSpanFlag = (flags: number, flag: SpanFlag): boolean => (flags & SPAN_FLAGS[flag]) !== 0;
