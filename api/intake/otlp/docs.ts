// The documentation of the OTLP endpoints. handler.ts serves them.
import { z } from 'zod';
import type { RouteDoc } from '../../openapi/document.ts';

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
const body = z
  .object({
    resourceSpans: z.array(
      z.looseObject({
        resource: z.looseObject({ attributes: z.array(keyValue).optional() }).optional(),
        scopeSpans: z.array(z.looseObject({ scope: z.looseObject({}).optional(), spans: z.array(span) })),
      }),
    ),
  })
  .meta({ id: 'OtlpTraces' });
const response = z
  .object({
    partialSuccess: z
      .object({ rejectedSpans: z.string().describe('Their number'), errorMessage: z.string() })
      .optional(),
  })
  .meta({ id: 'OtlpAnswer' });
const rpcStatus = z
  .object({
    code: z.int().describe('A google.rpc.Code'),
    message: z.string(),
    details: z
      .array(z.looseObject({ '@type': z.string() }))
      .describe('A google.rpc.ErrorInfo: reason is the code of the contract'),
  })
  .meta({ id: 'RpcStatus' });

const example = {
  resourceSpans: [
    {
      resource: { attributes: [{ key: 'service.name', value: { stringValue: 'support' } }] },
      scopeSpans: [
        {
          spans: [
            {
              traceId: '5b8efff798038103d269b633813fc60c',
              spanId: 'eee19b7ec3c1b174',
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
};

export const OTLP_DOCS: readonly RouteDoc[] = ['/v1/otlp/v1/traces', '/v1/traces'].map((path) => ({
  method: 'post',
  path,
  operation_id: path === '/v1/traces' ? 'otlp_traces_short' : 'otlp_traces',
  summary: 'Export OpenTelemetry spans (OTLP/HTTP)',
  description:
    'Accepts an ExportTraceServiceRequest in protobuf or JSON, optionally gzipped; the limit of 5 MiB applies to the decompressed size. Responds with an ExportTraceServiceResponse once the log has stored every span. partialSuccess counts spans that cannot be accepted; the others are stored. A span sent again is counted once. For a body that is not OTLP, responds with 400 and a google.rpc.Status in the encoding of the request.',
  tag: 'Ingest',
  access: 'ingest:write',
  params: z.object({}),
  query: z.object({}),
  body,
  response,
  bare: true,
  keyless: true,
  media: ['application/json', 'application/x-protobuf'],
  audit: null,
  example,
  errors: ['invalid_request', 'rate_limited', 'payment_required', 'upstream_unavailable'],
  other_errors: {
    schema: rpcStatus,
    status_of: () => 400,
    only: (code) => code === 'invalid_request',
  },
}));
