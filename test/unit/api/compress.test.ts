// Answers that hold a secret are never compressed, whatever their size and whatever the client accepts.
import express from 'express';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { attend, type EdgeDeps, mountRoutes } from '../../../api/http/mount.ts';
import { definePublicRoute, type Route } from '../../../api/http/route.ts';
import { COMPRESS_BYTES_MIN } from '../../../api/http/compress.ts';
import { listening } from '../../support/listening.ts';

const route = (path: string, bytes: number, secret?: true): Route =>
  definePublicRoute({
    method: 'get',
    path,
    operation_id: path.slice(1),
    summary: '',
    tag: 'T',
    ...(secret === undefined ? {} : { secret }),
    bare: true,
    response: z.string(),
    handler: () => ({ bare: 'x'.repeat(bytes) }),
  });

test('large answers are compressed unless their route holds a secret', async () => {
  const deps = { now: Date.now, observe: () => undefined } as unknown as EdgeDeps;
  const app = express();
  app.use((req, res, next) => {
    attend(req, res, 'req_1', deps);
    next();
  });
  // A text of n characters is n + 2 bytes of JSON.
  mountRoutes(
    app,
    [
      route('/small', COMPRESS_BYTES_MIN - 3),
      route('/large', COMPRESS_BYTES_MIN - 2),
      route('/secret', 10 * COMPRESS_BYTES_MIN, true),
    ],
    deps,
  );
  await listening(app, async (url) => {
    const codings = [];
    for (const path of ['/small', '/large', '/secret']) {
      const { headers } = await fetch(url + path, { headers: { 'Accept-Encoding': 'gzip' } });
      codings.push([path, headers.get('content-encoding'), headers.get('vary')]);
    }
    expect(codings).toEqual([
      ['/small', null, null],
      ['/large', 'gzip', 'Accept-Encoding'],
      ['/secret', null, null],
    ]);
  });
});
