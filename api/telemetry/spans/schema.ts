// Request and response shapes of the span search.
import { z } from 'zod';
import { outcome } from '../../../schemas/formats/fields.ts';
import { NO_WORD, parseSearch } from '../../../pipeline/domain/text/search_text.ts';
import { limitParam } from '../../http/pagination.ts';
import { listParam } from '../../http/route.ts';
import { timeParam } from '../../http/time_param.ts';

const QUERY_CHARS_MAX = 1000;
const QUERY_WORDS_MAX = 32;

/** A float as clients write it: 0.00001 is 1e-05 in Python, 1e-7 in JavaScript. */
const costParam = z
  .string()
  .regex(/^(?:\d{1,20}(?:\.\d{0,30})?|\.\d{1,30})(?:e[+-]?\d{1,2})?$/i, { error: 'must be a number of USD, 0 or more' })
  .transform(Number);

export const searchQuery = z.object({
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
        'Words to search for, ignoring case and diacritics. A span matches with any of them, and the best match comes first. "Quoted phrases" match consecutive words, and every one of them must match',
    }),
  model: z.string().min(1).optional(),
  outcome: outcome.optional(),
  min_cost_usd: costParam.optional(),
  max_cost_usd: costParam.optional(),
  since: timeParam
    .optional()
    .describe('Spans that started at or after this time. The ranking counts documents in this period too'),
  until: timeParam
    .optional()
    .describe('Spans that started at or before this time. The ranking counts documents in this period too'),
  agent_id: z.string().min(1).optional().describe('Spans of traces of this agent'),
  tags: listParam(z.string()).optional().describe('Spans of traces with any of these tags'),
  snippets: z
    .enum(['true', 'false'])
    .default('false')
    .transform((text) => text === 'true')
    .meta({
      type: 'boolean',
      default: false,
      description:
        'true returns the part of each text around its first match in place of the whole texts, with more fields of the span and the weight of each word',
    }),
  limit: limitParam,
});
export type SearchQuery = z.output<typeof searchQuery>;

export const searchHit = z.object({
  span_id: z.string(),
  trace_id: z.string(),
  prompt: z.string(),
  response: z.string(),
  model: z.string(),
  score: z.number().describe('BM25 score over prompt and response as one document'),
});
export type SearchHit = z.infer<typeof searchHit>;

const mark = z
  .tuple([z.int().min(0), z.int().min(0)])
  .describe('Start and end of a match in the snippet, in UTF-16 code units; the end is exclusive');

export const snippetHit = z
  .object({
    span_id: z.string(),
    trace_id: z.string(),
    name: z.string(),
    model: z.string(),
    agent_id: z.string().nullable().describe('Agent of the trace'),
    outcome,
    started_at: z.iso.datetime(),
    cost_usd: z.number(),
    score: z.number().describe('BM25 score over prompt and response as one document'),
    score_parts: z
      .array(z.object({ word: z.string(), score: z.number() }))
      .describe('Words of the query that the span has, with what each adds to the score, the most first'),
    part: z.enum(['prompt', 'response']).describe('Text that the snippet is from'),
    snippet: z.string(),
    marks: z.array(mark),
  })
  .meta({ id: 'SearchSnippet' });
export type SnippetHit = z.infer<typeof snippetHit>;

export const searchMeta = z.object({
  candidates: z.int().describe('Number of spans that were scored; for phrases, those that have their words'),
  truncated: z
    .boolean()
    .describe(
      'Whether the oldest spans were left out because too many have the words, or the response has fewer hits because their texts exceed its maximum size or too many texts have the words of a phrase',
    ),
  terms: z
    .array(
      z.object({
        word: z.string(),
        df: z.int().describe('Number of documents in the period that have the word'),
        idf: z.number().describe('Weight of the word; the rarer the word, the larger. 0 if it occurs nowhere'),
      }),
    )
    .optional()
    .describe('Words of the query, the rarest first. Returned with snippets=true'),
  waiting: z
    .int()
    .optional()
    .describe(
      'Number of texts of the period that have just arrived and cannot be searched yet. Returned with snippets=true',
    ),
  took_ms: z.int().optional().describe('Duration of the search, milliseconds. Returned with snippets=true'),
});
export type SearchMeta = z.infer<typeof searchMeta>;
