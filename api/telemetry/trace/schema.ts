// Request and response shapes of the reads of one trace. The shapes of a conversation are in
// conversation_schema.ts.
import { z } from 'zod';
import { outcome } from '../../../schemas/formats/fields.ts';
import { SPAN_FLAGS } from '../../../pipeline/domain/traces/span_flags.ts';
import { NO_WORD, parseSearch } from '../../../pipeline/domain/text/search_text.ts';
import { scoreItem, spanItem, traceItem, traceParams } from '../../http/trace_items.ts';

/** Maximum characters of a text that a span is returned with. */
export const SPAN_TEXT_CHARS_MAX = 256 * 1024;
/** Maximum spans of an outline. */
export const OUTLINE_SPANS_MAX = 50_000;
/** Maximum failed spans of an outline whose messages are returned. */
export const OUTLINE_ERRORS_MAX = 50;
/** Maximum matches in the texts of one trace. */
export const MATCHES_MAX = 500;
/** Maximum scores that an outline or a span is returned with. */
export const SCORES_MAX = 200;
const QUERY_CHARS_MAX = 1000;
const QUERY_WORDS_MAX = 32;

export const spanParams = traceParams.extend({ span_id: z.string() });

export const textSide = z.enum(['prompt', 'response']);
export type TextSide = z.infer<typeof textSide>;
export const textParams = spanParams.extend({ text: textSide });

/** Characters of a text that belong to a word or phrase of the query. */
const mark = z
  .tuple([z.int().min(0), z.int().min(0)])
  .describe('Start and end of a match in the snippet, in UTF-16 code units; the end is exclusive');

const complete = z
  .boolean()
  .describe('false while further spans are expected: the last one arrived a moment ago, or the root is missing');
const traceSampled = z.boolean().describe('false if sampling kept only a summary of every event of the trace');

export const traceDetail = traceItem.extend({
  complete,
  sampled: traceSampled,
  models: z.array(z.string()).describe('Models that its spans called, in order of their names'),
});

const FLAG_NAMES = Object.entries(SPAN_FLAGS)
  .map(([name, bit]) => `${bit} ${name}`)
  .join(', ');

const column = <T extends z.ZodType>(item: T) => z.array(item);

export const outline = z.object({
  trace: traceItem,
  complete,
  sampled: traceSampled,
  names: z.array(z.string()).describe('Names of spans; spans.name holds indexes of this list'),
  models: z.array(z.string()).describe('Models that spans called; spans.model holds indexes of this list'),
  errors: z
    .array(
      z.object({
        i: z.int().describe('Index of the span in the columns'),
        message: z.string().describe('Error message, or the beginning of the response; empty if the span has neither'),
      }),
    )
    .describe(`Failed spans, those that ended last first, at most ${OUTLINE_ERRORS_MAX}`),
  scores: z.array(scoreItem).describe(`Scores of the trace and of its spans, newest first, at most ${SCORES_MAX}`),
  spans: z
    .object({
      span_id: column(z.string()),
      parent: column(z.int()).describe(
        'Index of the parent in these columns; -1 for a root, and for a span whose parent is not among them',
      ),
      name: column(z.int()).describe('Index in names'),
      kind: column(z.enum(['llm', 'tool', 'event', 'app'])),
      model: column(z.int()).describe('Index in models; -1 if no model was called'),
      outcome: column(outcome),
      start_ms: column(z.int()).describe('Milliseconds from trace.started_at'),
      duration_ms: column(z.int()),
      first_token_ms: column(z.int()).describe(
        'Milliseconds from the start of the span to its first token; -1 if unknown',
      ),
      input_tokens: column(z.int()),
      output_tokens: column(z.int()),
      cost_usd: column(z.number()),
      flags: column(z.int()).describe(`Facts about the span, as bits: ${FLAG_NAMES}`),
    })
    .describe(
      'Columns of equal length, one entry for each span. Depth first: a span is followed by its children in the order of their start',
    ),
});
export type Outline = z.infer<typeof outline>;
export const outlineMeta = z.object({
  total: z.int().describe('Number of spans of the trace'),
  truncated: z.boolean().describe('Whether the trace has more spans than the response. The response has the first'),
});

export const textState = z.enum(['here', 'cold', 'dropped', 'sampled_out', 'none']);
export type TextState = z.infer<typeof textState>;

const perText = <T extends z.ZodType>(item: T) => z.object({ prompt: item, response: item });

export const spanDetail = spanItem.extend({
  kind: z.enum(['llm', 'tool', 'event', 'app']),
  agent_id: z.string().nullable(),
  cached_input_tokens: z.int(),
  first_token_ms: z.int().nullable().describe('Milliseconds to the first token; null if unknown'),
  price_source: z
    .string()
    .describe('given, org, a price list with its entry, or missing. Empty if the span has no cost to compute'),
  prompt_name: z.string().nullable().describe('Registered prompt that the call used'),
  prompt_version: z.string().nullable(),
  text_state: textState.describe(
    'here: the texts are stored. cold: retention moved them to cold storage. dropped: retention or an erasure deleted them. sampled_out: sampling kept only a summary. none: the span was sent without texts',
  ),
  texts_left_on: z.iso
    .date()
    .nullable()
    .describe('Day on which the texts moved to cold storage, where text_state is cold'),
  chars: perText(z.int()).describe('Length of the whole texts in characters'),
  truncated: perText(z.boolean()).describe(
    `Whether the response has only the first ${SPAN_TEXT_CHARS_MAX.toLocaleString('en')} characters of a text. Attributes that repeat a truncated text are left out`,
  ),
  events: z
    .array(
      z.object({
        name: z.string(),
        at: z.iso.datetime().nullable(),
        attributes: z.record(z.string(), z.unknown()),
      }),
    )
    .describe('Events that an OpenTelemetry span recorded'),
  links: z
    .array(z.object({ trace_id: z.string(), span_id: z.string(), attributes: z.record(z.string(), z.unknown()) }))
    .describe('Spans of this or another trace that an OpenTelemetry span is linked to'),
  scores: z.array(scoreItem).describe('Scores of the span, and those of the whole trace, whose span_id is null'),
});
export type SpanDetail = z.infer<typeof spanDetail>;

export const matchesQuery = z.object({
  q: z
    .string()
    .max(QUERY_CHARS_MAX)
    .transform((text, context) => {
      const search = parseSearch(text);
      if (search === null) context.addIssue({ code: 'custom', message: NO_WORD });
      return search ?? z.NEVER;
    })
    .refine(({ words }) => words.length <= QUERY_WORDS_MAX, {
      error: `must have at most ${QUERY_WORDS_MAX} different words`,
    })
    .meta({
      type: 'string',
      description:
        'Words that must all occur in the prompt and response of one span, ignoring case and diacritics. "Quoted phrases" match consecutive words',
    }),
});

export const match = z.object({
  span_id: z.string(),
  part: textSide,
  snippet: z.string().describe('Part of the text around its first match'),
  marks: z.array(mark),
});
export type Match = z.infer<typeof match>;
export const matchesMeta = z.object({
  truncated: z.boolean().describe('Whether the trace has more matches than the response'),
});
