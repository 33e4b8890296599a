// The error table against the codes and statuses of the contract, and the translation of foreign
// errors.
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { ClickHouseError } from '@clickhouse/client';
import { ApiError, describeIssues, errorBody, STATUS_OF, toApiError } from '../../../api/http/errors.ts';
import { classifyStoreFailure } from '../../../api/http/store_errors.ts';
import { StoreUnavailable } from '../../../sql/client/client.ts';

/** Codes by status, as the contract lists them. */
const CONTRACT: Record<number, string> = {
  401: 'unauthenticated',
  402: 'payment_required',
  403: 'cross_org_access forbidden invalid_register_token',
  404: 'agent_not_found api_key_not_found dataset_not_found eval_not_found incident_not_found job_not_found judge_not_found member_not_found not_found org_not_found prompt_not_found span_not_found text_not_found trace_not_found webhook_not_found',
  405: 'method_not_allowed',
  409: 'agent_already_registered conflict idempotency_in_progress',
  410: 'expired',
  413: 'payload_too_large',
  415: 'unsupported_media_type',
  422: 'decode_failed idempotency_key_reused invalid_framework invalid_request invalid_rubric invalid_threshold replay_failed unsupported_api_version',
  429: 'judge_quota_exceeded rate_limited',
  500: 'internal_error',
  501: 'not_implemented',
  502: 'upstream_unavailable',
  503: 'upstream_not_configured',
};

test('every code of the contract has its status, and there is no other', () => {
  const table = Object.groupBy(Object.entries(STATUS_OF), ([, status]) => status);
  const listed = Object.fromEntries(
    Object.entries(table).map(([status, codes]) => [
      status,
      codes
        .map(([code]) => code)
        .sort()
        .join(' '),
    ]),
  );
  expect(listed).toEqual(CONTRACT);
  expect(errorBody.shape.code.options.toSorted()).toEqual(Object.keys(STATUS_OF).sort());
});

describe('what is thrown becomes', () => {
  const code = (error: unknown) => toApiError(error, classifyStoreFailure).code;
  const storeError = (codeOfStore: string) =>
    new ClickHouseError({ message: 'secret SQL', code: codeOfStore, type: 'X' });

  test.each([
    ['an ApiError itself', new ApiError('conflict', 'x'), 'conflict'],
    ['a failed check 422', new z.ZodError([]), 'invalid_request'],
    ['a path that cannot be decoded 404', new URIError('x'), 'not_found'],
    ['a bug 500', new TypeError('x is not a function'), 'internal_error'],
    ['something that is no error 500', 'text', 'internal_error'],
    ['a store that does not answer 502', new StoreUnavailable('x'), 'upstream_unavailable'],
    ['a refused connection 502', Object.assign(new Error('x'), { code: 'ECONNREFUSED' }), 'upstream_unavailable'],
    [
      'a wrapped network error 502',
      new Error('fetch failed', { cause: Object.assign(new Error('x'), { code: 'ECONNRESET' }) }),
      'upstream_unavailable',
    ],
    ['a store out of memory 502', storeError('241'), 'upstream_unavailable'],
    ['a store that shuts down 502', storeError('236'), 'upstream_unavailable'],
    ['a store without its tables yet 502', storeError('60'), 'upstream_unavailable'],
    ['a statement that the store refuses 500', storeError('62'), 'internal_error'],
  ])('%s', (_what, error, expected) => {
    expect(code(error)).toBe(expected);
  });

  test('the detail shows nothing of a cause', () => {
    for (const error of [storeError('62'), storeError('241'), new Error('secret SQL')]) {
      expect(toApiError(error, classifyStoreFailure).detail).not.toContain('secret');
    }
  });
});

test('a failed validation names its field', () => {
  const schema = z.object({ a: z.object({ list: z.array(z.int()) }) });
  const told = (value: unknown) => {
    const result = schema.safeParse(value);
    return result.success ? 'fine' : describeIssues(result.error);
  };
  expect(told({ a: { list: [1, 'x'] } })).toMatch(/^a\.list\[1\]: /);
  expect(told({})).toMatch(/^a: /);
  expect(told(7)).toMatch(/^body: /);
});
