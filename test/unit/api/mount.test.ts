// The edge around a handler: how deep a body may be, and the effect of an Idempotency-Key on routes
// that change, read or stream.
import { randomBytes, randomUUID } from 'node:crypto';
import express from 'express';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { ANSWER_BYTES_MAX, Idempotency } from '../../../api/http/idempotency.ts';
import { attend, type EdgeDeps, mountRoutes } from '../../../api/http/mount.ts';
import { newRequestId } from '../../../api/http/request_id.ts';
import { definePublicRoute, type Route, STREAMED } from '../../../api/http/route.ts';
import { createLogger } from '../../../ops/platform/logger.ts';
import { DEPTH_MAX } from '../../../pipeline/domain/text/nesting.ts';
import { keyedRecords } from '../../support/keyed_records.ts';
import { listening } from '../../support/listening.ts';

const body = z.looseObject({ commit: z.boolean().optional(), fail: z.boolean().optional() });
const shown = { method: 'post', summary: '', tag: 'T', body, response: z.unknown() } as const;
/** An answer that no compression makes small enough to be kept. */
const tooLarge = randomBytes(2 * ANSWER_BYTES_MAX).toString('base64');

/** Returns routes that record every call of a handler, in order. */
function someRoutes(calls: string[]): Route[] {
  return [
    definePublicRoute({
      ...shown,
      path: '/changes',
      operation_id: 'changes',
      audit: { action: 'thing.change', target: 'trace' },
      handler: (ctx) => {
        calls.push('changes');
        if (ctx.body.commit !== true) ctx.audit.nothing();
        return { data: tooLarge };
      },
    }),
    definePublicRoute({
      ...shown,
      path: '/reads',
      operation_id: 'reads',
      audit: null,
      handler: () => {
        calls.push('reads');
        return { data: tooLarge };
      },
    }),
    definePublicRoute({
      ...shown,
      path: '/streams',
      operation_id: 'streams',
      audit: null,
      media: ['text/plain'],
      handler: ({ body: asked, res }) => {
        calls.push('streams');
        if (asked.fail === true) throw new Error('broken');
        res.end('a stream');
        return STREAMED;
      },
    }),
  ];
}

interface Heard {
  status: number;
  code: unknown;
  detail: unknown;
}

/** Serves the routes while `ask` runs. */
async function served(
  calls: string[],
  ask: (post: (path: string, raw: string, key?: string) => Promise<Heard>) => Promise<void>,
) {
  const none = { done: () => Promise.resolve(), failed: () => Promise.resolve() };
  // Public routes need neither keys nor tokens, and have no rate.
  const deps = {
    audit: { begin: () => Promise.resolve(none) },
    idempotency: new Idempotency({ store: keyedRecords().store, now: Date.now, onProblem: () => undefined }),
    classifyStore: () => null,
    bodyBytesMax: 5_000_000,
    now: Date.now,
    log: createLogger('edge-test', 'silent'),
    observe: () => undefined,
  } as unknown as EdgeDeps;
  const app = express();
  app.use((req, res, next) => {
    attend(req, res, newRequestId(), deps);
    next();
  });
  mountRoutes(app, someRoutes(calls), deps);
  await listening(app, (url) =>
    ask(async (path, raw, key) => {
      const headers = { 'Content-Type': 'application/json', ...(key === undefined ? {} : { 'Idempotency-Key': key }) };
      const response = await fetch(url + path, { method: 'POST', headers, body: raw });
      const text = await response.text();
      const said = text.startsWith('{') ? (JSON.parse(text) as Record<string, unknown>) : {};
      return { status: response.status, code: said['code'], detail: said['detail'] };
    }),
  );
}

test('a body may be nested up to a bound and no deeper', async () => {
  const nested = (levels: number) => `{"deep":${'['.repeat(levels - 1)}${']'.repeat(levels - 1)}}`;
  const calls: string[] = [];
  await served(calls, async (post) => {
    expect((await post('/reads', nested(DEPTH_MAX))).status).toBe(200);
    for (const levels of [DEPTH_MAX + 1, 200_000])
      expect(await post('/reads', nested(levels))).toEqual({
        status: 422,
        code: 'invalid_request',
        detail: `body: is nested deeper than ${DEPTH_MAX} levels`,
      });
  });
  expect(calls).toHaveLength(1);
});

describe('an Idempotency-Key', () => {
  test('a keyed change is never run twice, even when its answer was too large; a keyed read is', async () => {
    const calls: string[] = [];
    await served(calls, async (post) => {
      const [changed, dry, read] = [randomUUID(), randomUUID(), randomUUID()];
      expect((await post('/changes', '{"commit":true}', changed)).status).toBe(200);
      expect(await post('/changes', '{"commit":true}', changed)).toMatchObject({ status: 409, code: 'conflict' });
      expect(calls).toEqual(['changes']);
      for (let time = 0; time < 2; time++) expect((await post('/changes', '{}', dry)).status).toBe(200);
      for (let time = 0; time < 2; time++) expect((await post('/reads', '{}', read)).status).toBe(200);
    });
    expect(calls).toEqual(['changes', 'changes', 'changes', 'reads', 'reads']);
  });

  test('a keyed stream stands for one body, which runs again; a failure releases the key', async () => {
    const calls: string[] = [];
    await served(calls, async (post) => {
      const key = randomUUID();
      expect((await post('/streams', '{"fail":true}', key)).status).toBe(500);
      for (let time = 0; time < 2; time++) expect((await post('/streams', '{}', key)).status).toBe(200);
      expect(await post('/streams', '{"commit":true}', key)).toMatchObject({
        status: 422,
        code: 'idempotency_key_reused',
      });
    });
    expect(calls).toEqual(['streams', 'streams', 'streams']);
  });
});
