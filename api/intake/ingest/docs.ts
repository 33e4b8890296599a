// The documentation of the ingest endpoints. handler.ts serves them, with the same schemas.
import { z } from 'zod';
import { BATCH_EVENTS_MAX, EVENT_SCHEMAS, type IngestFormat } from '../../../schemas/formats/formats.ts';
import type { RouteDoc } from '../../openapi/document.ts';

const eventIds = z.object({
  event_id: z.string().describe('evt_ + 16 hex characters: the same event always gets the same id'),
  trace_id: z.string(),
  span_id: z.string(),
});
const one = eventIds.meta({ id: 'IngestedEvent' });
const many = eventIds.extend({ accepted: z.int().min(1), events: z.array(one) }).meta({ id: 'IngestedBatch' });

const batchOf = (event: z.ZodType) => z.object({ events: z.array(event).min(1).max(BATCH_EVENTS_MAX) });

interface FormatDoc {
  summary: string;
  description?: string;
  query?: z.ZodObject;
  pages?: true;
  body: z.ZodType;
  response: z.ZodType;
  example: unknown;
}

const call = { duration_ms: 840, outcome: 'success' };
const question = [{ role: 'user', content: 'What is the capital of France?' }];
const agentStep = {
  name: 'lookup',
  outcome: 'success',
  duration_ms: 35,
  attributes: { span_kind: 'tool', agent_id: 'agent_support' },
  tags: ['prod'],
};

const FORMATS: Record<IngestFormat, FormatDoc> = {
  chatcompletion: {
    summary: 'Ingest a chat completion call',
    body: EVENT_SCHEMAS.chatcompletion,
    response: one,
    example: {
      request: { model: 'gpt-4o-mini', messages: question },
      response: {
        id: 'c1',
        model: 'gpt-4o-mini',
        choices: [{ index: 0, message: { role: 'assistant', content: 'Paris.' }, finish_reason: 'stop' }],
        usage: { prompt_tokens: 14, completion_tokens: 2, total_tokens: 16 },
      },
      ...call,
    },
  },
  messages: {
    summary: 'Ingest a messages call',
    body: EVENT_SCHEMAS.messages,
    response: one,
    example: {
      request: { model: 'claude-sonnet-4-5', system: 'Answer in one word.', messages: question, max_tokens: 64 },
      response: {
        id: 'm1',
        content: [{ type: 'text', text: 'Paris.' }],
        stop_reason: 'end_turn',
        usage: { input_tokens: 20, output_tokens: 4 },
      },
      ...call,
    },
  },
  chain: {
    summary: 'Ingest a chain run with its steps',
    body: EVENT_SCHEMAS.chain,
    response: one,
    example: {
      request: { model: 'gpt-4o-mini', messages: question },
      response: {
        generations: [[{ text: 'Paris.', generation_info: {} }]],
        llm_output: { token_usage: { prompt_tokens: 30, completion_tokens: 3 } },
      },
      chain_name: 'geography',
      agent_name: 'agent_support',
      intermediate_steps: [['search: capital of France', 'Paris is the capital of France.']],
      ...call,
    },
  },
  custom: {
    summary: 'Ingest custom events',
    body: z.union([batchOf(EVENT_SCHEMAS.custom), EVENT_SCHEMAS.custom]),
    response: z.union([many, one]),
    example: { events: [agentStep] },
  },
  app: {
    summary: 'Ingest browser or mobile events',
    description:
      'Accepts requests of pages of any origin, without browser credentials. For navigator.sendBeacon, which cannot set headers, the body may be sent as text/plain and the key in api_key.',
    query: z.object({
      api_key: z.string().optional().describe('An API key whose only scope is ingest:write, in place of X-Org-Api-Key'),
    }),
    pages: true,
    body: batchOf(EVENT_SCHEMAS.app),
    response: many,
    example: {
      events: [
        {
          event_type: 'page_view',
          user_id: 'u1',
          session_id: 's1',
          url: 'https://example.com/',
          attributes: { duration_ms: 120 },
        },
      ],
    },
  },
};

const EVERY_FORMAT =
  'Responds once the log has stored every event. Accepts gzip and br bodies; the limit of 5 MiB applies to the decompressed size. One invalid event rejects the whole body; detail names its index and field. A reached hard budget limit responds with 429, Retry-After and X-Quota-Tokens-Status, or with 402 once an overage budget is spent. The rate limit of ingest counts requests, that of app counts events.';

export const INGEST_DOCS: readonly RouteDoc[] = Object.entries(FORMATS).map(
  ([format, { summary, description, query, pages, body, response, example }]) => ({
    method: 'post',
    path: `/orgs/:org_id/ingest/${format}`,
    operation_id: `ingest_${format}`,
    summary,
    description: [EVERY_FORMAT, description ?? ''].filter((part) => part !== '').join('\n\n'),
    tag: 'Ingest',
    access: 'ingest:write',
    params: z.object({ org_id: z.string() }),
    query: query ?? z.object({}),
    ...(pages === true ? { pages } : {}),
    body,
    response,
    example,
    errors: ['decode_failed', 'rate_limited', 'payment_required'],
  }),
);
