// Errors of the OTLP paths with a google.rpc.Status: those of a body that is not OTLP, and no
// others of the same code.
import { expect, it } from 'vitest';
import { createOtlpHandler, type OtlpDeps } from '../../../api/intake/otlp/handler.ts';
import { createLogger } from '../../../ops/platform/logger.ts';
import { anAdmission } from '../../support/admission.ts';
import { asJson, exportOf, otlpSpan } from '../../support/otlp.ts';
import { listening } from '../../support/listening.ts';

const PATH = '/v1/otlp/v1/traces';
const KEY = 'sk_svc_any';
const person = { kind: 'person', user_id: 'u', email: null, expires_at: 0 };
const key = { kind: 'api_key', org_id: 'org_a', key_id: 'k', scopes: new Set(['*']) };

/** Accepts every token and KEY. */
function aHandler(statuses: number[]): ReturnType<typeof createOtlpHandler> {
  const deps = {
    edge: {
      auth: { tokens: { verify: () => person }, keys: { byHash: (hash: string) => ({ hash, credential: key }) } },
      bodyBytesMax: 1_000_000,
      now: Date.now,
      log: createLogger('otlp-test', 'silent'),
      observe: (_route: string, _method: string, status: number) => statuses.push(status),
    },
    admission: anAdmission(),
    store: () => Promise.resolve(),
    partitions: 4,
    observeIngest: () => undefined,
    refused: () => undefined,
  } as unknown as OtlpDeps;
  return createOtlpHandler(deps);
}

it('a body that is not OTLP is answered 400 with a Status, a token without an organization 422 as on every path', async () => {
  const statuses: number[] = [];
  const handler = aHandler(statuses);
  await listening(
    (req, res) => {
      handler(req, res, { path: PATH, signal: 'traces' });
    },
    async (url) => {
      const send = async (credential: string, body: Buffer, more: Record<string, string> = {}) => {
        const headers = { Authorization: `Bearer ${credential}`, 'Content-Type': 'application/json', ...more };
        const response = await fetch(url + PATH, { method: 'POST', headers, body: new Uint8Array(body) });
        const id = response.headers.get('x-request-id');
        return { status: response.status, id, said: (await response.json()) as Record<string, unknown> };
      };
      const good = asJson(exportOf([otlpSpan(1)]));
      expect(await send(KEY, good)).toMatchObject({ status: 200 });
      for (const noOtlp of [await send(KEY, Buffer.from('{')), await send(KEY, good, { 'Content-Encoding': 'gzip' })])
        expect(noOtlp).toMatchObject({ status: 400, said: { code: 3, details: [{ reason: 'invalid_request' }] } });
      const nowhere = await send('eyJhbGciOiJub25lIn0.e30.c2ln', good);
      expect(nowhere.status).toBe(422);
      expect(nowhere.said).toEqual({
        code: 'invalid_request',
        detail: 'X-Org-Id: is needed with a token',
        request_id: nowhere.id,
      });
    },
  );
  // The metrics count them in the same way.
  expect(statuses).toEqual([200, 400, 400, 422]);
});
