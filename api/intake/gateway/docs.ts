// The documentation of the gateway's endpoints, which handler.ts serves. It lists only what the
// gateway itself reads; the upstream defines the rest.
import { z } from 'zod';
import { type ErrorCode, STATUS_OF } from '../../http/errors.ts';
import type { RouteDoc } from '../../openapi/document.ts';

const error = z
  .object({
    error: z.object({
      message: z.string(),
      type: z.string(),
      code: z.enum(Object.keys(STATUS_OF) as [ErrorCode, ...ErrorCode[]]),
      param: z.string().nullable(),
    }),
  })
  .meta({ id: 'GatewayError' });

const anthropicError = z
  .object({
    type: z.literal('error'),
    error: z.object({ type: z.string(), message: z.string() }),
    request_id: z.string(),
  })
  .meta({ id: 'GatewayAnthropicError' });

const usage = z.looseObject({ prompt_tokens: z.int(), completion_tokens: z.int().optional(), total_tokens: z.int() });
const chat = z
  .looseObject({
    model: z.string(),
    messages: z.array(z.looseObject({ role: z.string() })),
    stream: z.boolean().optional(),
    stream_options: z.looseObject({ include_usage: z.boolean().optional() }).optional(),
  })
  .meta({ id: 'GatewayChatCompletion' });
const chatAnswer = z.looseObject({
  id: z.string(),
  model: z.string(),
  choices: z.array(z.looseObject({})),
  usage: usage.optional(),
});
const responses = z.looseObject({
  model: z.string(),
  input: z.union([z.string(), z.array(z.looseObject({}))]),
  stream: z.boolean().optional(),
});
const messagesBody = z.looseObject({
  model: z.string(),
  max_tokens: z.int(),
  messages: z.array(z.looseObject({ role: z.string() })),
  stream: z.boolean().optional(),
});
const messagesAnswer = z.looseObject({ id: z.string(), content: z.array(z.looseObject({ type: z.string() })) });
const embeddings = z.looseObject({ model: z.string(), input: z.union([z.string(), z.array(z.unknown())]) });
const embeddingsAnswer = z.looseObject({
  data: z.array(z.looseObject({ embedding: z.unknown() })),
  model: z.string(),
  usage,
});
const model = z.looseObject({ id: z.string() });

const PASSED =
  "Passes the request through byte for byte, unknown fields included, and returns the upstream's answer unchanged, errors included. Only listed headers pass: to the upstream Accept, Content-Type, User-Agent, OpenAI-*, Anthropic-*, X-Stainless-*, X-Client-Request-Id, X-App, X-Claude-Code-Session-Id, X-Claude-Code-Agent-Id, HTTP-Referer, X-Title, traceparent and tracestate; back the content headers, OpenAI-*, Anthropic-*, x-ratelimit-*, Request-Id, Retry-After and x-should-retry. No credential of the caller reaches the upstream, except the caller's own one on a route with the credential `caller`. Responds with 429 and Retry-After while the organization has too many calls in progress.";
const RECORDED =
  'Every call becomes a span. X-Service-Trace-Id, X-Service-Parent-Span-Id, X-Service-Agent-Id, X-Service-Session-Id, X-Service-User-Id and X-Service-Tags (comma-separated) label it, X-Service-Prompt-Name, X-Service-Prompt-Version and X-Service-Prompt-Variables (a JSON object) name the prompt of the registry behind it, and the response names it in X-Service-Trace-Id and X-Service-Span-Id. Of the headers of Helicone, Helicone-Auth (the API key of this service), Helicone-User-Id, Helicone-Session-Id, Helicone-Session-Path, Helicone-Session-Name and Helicone-Property-* are read as well. Pages of this service call with the session cookie and X-Org-Id. X-Service-Cache: seconds answers the same call from the cache. A traceparent makes the call a child of its span. Hard budgets reserve an estimate before the call and settle the actual use after it.';
const OWN_ERRORS: readonly ErrorCode[] = ['method_not_allowed', 'upstream_not_configured'];
const question = [{ role: 'user', content: 'What is the capital of France?' }];

interface Shown extends Pick<RouteDoc, 'method' | 'path' | 'operation_id' | 'summary' | 'body' | 'response'> {
  description: string;
  media?: readonly string[];
  params?: z.ZodType;
  example?: unknown;
}

const shown = ({ params = z.object({}), media = ['application/json'], method, path, ...rest }: Shown): RouteDoc => ({
  ...rest,
  path,
  method,
  tag: 'Gateway',
  access: 'gateway:invoke',
  params,
  query: z.object({}),
  media,
  keyless: true,
  ...(method === 'get' ? {} : { audit: null }),
  errors: method === 'get' ? OWN_ERRORS : [...OWN_ERRORS, 'payment_required'],
  other_errors: { schema: path.includes('messages') ? anthropicError : error, status_of: (code) => STATUS_OF[code] },
});

const STREAMS = ['application/json', 'text/event-stream'];

export const GATEWAY_DOCS: readonly RouteDoc[] = [
  shown({
    method: 'post',
    path: '/v1/chat/completions',
    operation_id: 'gateway_chat_completions',
    summary: 'Create a chat completion',
    description: `${PASSED} The gateway asks for the usage of a stream and hides it from a caller that did not ask. ${RECORDED}`,
    body: chat,
    response: chatAnswer,
    media: STREAMS,
    example: { model: 'gpt-4o-mini', messages: question },
  }),
  shown({
    method: 'post',
    path: '/v1/responses',
    operation_id: 'gateway_responses',
    summary: 'Create a response',
    description: `${PASSED} ${RECORDED}`,
    body: responses,
    response: z.looseObject({ id: z.string(), output: z.array(z.looseObject({})) }),
    media: STREAMS,
    example: { model: 'gpt-4o-mini', input: 'What is the capital of France?' },
  }),
  shown({
    method: 'post',
    path: '/v1/embeddings',
    operation_id: 'gateway_embeddings',
    summary: 'Create embeddings',
    description: `${PASSED} ${RECORDED}`,
    body: embeddings,
    response: embeddingsAnswer,
    example: { model: 'text-embedding-3-small', input: 'Paris' },
  }),
  shown({
    method: 'post',
    path: '/v1/messages',
    operation_id: 'gateway_messages',
    summary: 'Create a message',
    description: `Serves Anthropic's API, also at /anthropic/v1/messages. The API key of this service comes in x-api-key or as a bearer token; two different ones are 401. ${PASSED} ${RECORDED}`,
    body: messagesBody,
    response: messagesAnswer,
    media: STREAMS,
    example: { model: 'claude-sonnet-4-5', max_tokens: 1024, messages: question },
  }),
  shown({
    method: 'post',
    path: '/v1/messages/count_tokens',
    operation_id: 'gateway_count_tokens',
    summary: 'Count the tokens of a message',
    description: `Serves Anthropic's API, also at /anthropic/v1/messages/count_tokens. Calls no model, so nothing is recorded. ${PASSED}`,
    body: messagesBody.omit({ max_tokens: true }),
    response: z.looseObject({ input_tokens: z.int() }),
    example: { model: 'claude-sonnet-4-5', messages: question },
  }),
  shown({
    method: 'get',
    path: '/v1/models',
    operation_id: 'gateway_models',
    summary: "List the upstream's models",
    description: `A request with anthropic-version gets the list of the Anthropic upstream, in its shape. ${PASSED}`,
    body: null,
    response: z.looseObject({ data: z.array(model) }),
  }),
  shown({
    method: 'get',
    path: '/v1/models/:model',
    operation_id: 'gateway_model',
    summary: 'Get a model of the upstream',
    description: PASSED,
    params: z.object({
      model: z
        .string()
        .describe(
          'Letters, digits and . _ : @ + ~ -, in parts divided by / (%2F), none of them only dots; otherwise 422 invalid_request',
        ),
    }),
    body: null,
    response: model,
  }),
];
