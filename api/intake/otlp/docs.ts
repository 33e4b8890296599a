// The documentation of the OTLP endpoints. handler.ts serves them.
import { z } from 'zod';
import type { RouteDoc } from '../../openapi/document.ts';
import { OTLP_PATHS, type Signal } from './signals.ts';

const keyValue = z.looseObject({
  key: z.string(),
  value: z.looseObject({}).describe('stringValue, intValue, doubleValue, …'),
});
const span = z.looseObject({
  traceId: z.string().describe('32 hex characters'),
  spanId: z.string().describe('16 hex characters'),
  parentSpanId: z.string().optional(),
  name: z.string(),
  startTimeUnixNano: z.string(),
  endTimeUnixNano: z.string(),
  attributes: z.array(keyValue).optional(),
});
const logRecord = z.looseObject({
  traceId: z.string().describe('32 hex characters').optional(),
  spanId: z.string().describe('The span that the record belongs to, 16 hex characters').optional(),
  timeUnixNano: z.string().optional(),
  observedTimeUnixNano: z.string().optional(),
  eventName: z.string().optional(),
  severityNumber: z.int().optional(),
  severityText: z.string().optional(),
  body: z.looseObject({}).describe('stringValue, kvlistValue, …').optional(),
  attributes: z.array(keyValue).optional(),
});
const metric = z.looseObject({ name: z.string() });
const resource = z.looseObject({ attributes: z.array(keyValue).optional() }).optional();
const scope = z.looseObject({}).optional();

const BODIES = {
  traces: z
    .object({
      resourceSpans: z.array(
        z.looseObject({ resource, scopeSpans: z.array(z.looseObject({ scope, spans: z.array(span) })) }),
      ),
    })
    .meta({ id: 'OtlpTraces' }),
  logs: z
    .object({
      resourceLogs: z.array(
        z.looseObject({ resource, scopeLogs: z.array(z.looseObject({ scope, logRecords: z.array(logRecord) })) }),
      ),
    })
    .meta({ id: 'OtlpLogs' }),
  metrics: z
    .object({
      resourceMetrics: z.array(
        z.looseObject({ resource, scopeMetrics: z.array(z.looseObject({ scope, metrics: z.array(metric) })) }),
      ),
    })
    .meta({ id: 'OtlpMetrics' }),
};

const answerOf = (rejected: string) =>
  z.object({
    partialSuccess: z.object({ [rejected]: z.string().describe('Their number'), errorMessage: z.string() }).optional(),
  });
const RESPONSES = {
  traces: answerOf('rejectedSpans').meta({ id: 'OtlpAnswer' }),
  logs: answerOf('rejectedLogRecords').meta({ id: 'OtlpLogsAnswer' }),
  metrics: answerOf('rejectedDataPoints').meta({ id: 'OtlpMetricsAnswer' }),
};

const rpcStatus = z
  .object({
    code: z.int().describe('A google.rpc.Code'),
    message: z.string(),
    details: z
      .array(z.looseObject({ '@type': z.string() }))
      .describe('A google.rpc.ErrorInfo: reason is the code of the contract'),
  })
  .meta({ id: 'RpcStatus' });

const service = { attributes: [{ key: 'service.name', value: { stringValue: 'support' } }] };
const TRACE_ID = '5b8efff798038103d269b633813fc60c';
const SPAN_ID = 'eee19b7ec3c1b174';
const EXAMPLES = {
  traces: {
    resourceSpans: [
      {
        resource: service,
        scopeSpans: [
          {
            spans: [
              {
                traceId: TRACE_ID,
                spanId: SPAN_ID,
                name: 'chat gpt-4o-mini',
                kind: 3,
                startTimeUnixNano: '1767225600000000000',
                endTimeUnixNano: '1767225600840000000',
                attributes: [
                  { key: 'gen_ai.operation.name', value: { stringValue: 'chat' } },
                  { key: 'gen_ai.request.model', value: { stringValue: 'gpt-4o-mini' } },
                  { key: 'gen_ai.usage.input_tokens', value: { intValue: '14' } },
                  { key: 'gen_ai.usage.output_tokens', value: { intValue: '2' } },
                ],
              },
            ],
          },
        ],
      },
    ],
  },
  logs: {
    resourceLogs: [
      {
        resource: service,
        scopeLogs: [
          {
            logRecords: [
              {
                traceId: TRACE_ID,
                spanId: SPAN_ID,
                timeUnixNano: '1767225600000000000',
                eventName: 'gen_ai.user.message',
                body: {
                  kvlistValue: { values: [{ key: 'content', value: { stringValue: 'Where is order 17?' } }] },
                },
              },
            ],
          },
        ],
      },
    ],
  },
  metrics: {
    resourceMetrics: [
      {
        resource: service,
        scopeMetrics: [
          {
            metrics: [
              {
                name: 'http.client.requests',
                sum: { dataPoints: [{ timeUnixNano: '1767225600000000000', asInt: '1' }] },
              },
            ],
          },
        ],
      },
    ],
  },
};

const SUMMARIES: Readonly<Record<Signal, string>> = {
  traces: 'Export OpenTelemetry spans (OTLP/HTTP)',
  logs: 'Export OpenTelemetry log records (OTLP/HTTP)',
  metrics: 'Acknowledge OpenTelemetry metrics (OTLP/HTTP)',
};
const BOTH =
  'in protobuf or JSON, optionally gzipped; the limit of 5 MiB applies to the decompressed size. For a body that is not OTLP, responds with 400 and a google.rpc.Status in the encoding of the request.';
const DESCRIPTIONS: Readonly<Record<Signal, string>> = {
  traces: `Accepts an ExportTraceServiceRequest ${BOTH} Responds with an ExportTraceServiceResponse once the log has stored every span. partialSuccess counts spans that cannot be accepted; the others are stored. A span sent again is counted once.`,
  logs: `Accepts an ExportLogsServiceRequest ${BOTH} Responds with an ExportLogsServiceResponse once the log has stored every record. A record with a trace id becomes a child of its span. Messages of the GenAI conventions become the prompt and the response of their span where it has none. Records of coding agents (Claude Code, Codex, Gemini CLI) become model calls and tools of a trace for each prompt or session. A record without a trace id and without a session is rejected and counted in partialSuccess. A record sent again is counted once.`,
  metrics: `Accepts an ExportMetricsServiceRequest ${BOTH} Metrics are not stored: partialSuccess counts all data points and says so, so that exporters that send them succeed.`,
};

export const OTLP_DOCS: readonly RouteDoc[] = OTLP_PATHS.map(({ path, signal }) => ({
  method: 'post',
  path,
  operation_id: path.startsWith('/v1/otlp/') ? `otlp_${signal}` : `otlp_${signal}_short`,
  summary: SUMMARIES[signal],
  description: DESCRIPTIONS[signal],
  tag: 'Ingest',
  access: 'ingest:write',
  params: z.object({}),
  query: z.object({}),
  body: BODIES[signal],
  response: RESPONSES[signal],
  bare: true,
  keyless: true,
  media: ['application/json', 'application/x-protobuf'],
  audit: null,
  example: EXAMPLES[signal],
  errors: ['invalid_request', 'rate_limited', 'payment_required', 'upstream_unavailable'],
  other_errors: {
    schema: rpcStatus,
    status_of: () => 400,
    only: (code) => code === 'invalid_request',
  },
}));
