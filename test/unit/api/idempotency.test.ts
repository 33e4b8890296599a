// What is kept of an answer, by its size, and what a repeated request gets.
import { randomBytes, randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import {
  ANSWER_BYTES_MAX,
  Idempotency,
  type IdempotencyLock,
  type IdempotentRequest,
  PACKED_BYTES_MAX,
} from '../../../api/http/idempotency.ts';
import { type KeyedRecords, keyedRecords } from '../../support/keyed_records.ts';

const CHANGED = { changed: true };
const READ = { changed: false };
const aRequest = (more: Partial<IdempotentRequest> = {}): IdempotentRequest => ({
  tenant: 'org:a',
  endpoint: 'POST /x',
  key: randomUUID(),
  body: 'b',
  ...more,
});

function anIdempotency(records: KeyedRecords = keyedRecords()): Idempotency {
  return new Idempotency({
    store: records.store,
    now: Date.now,
    onProblem: (_, cause) => {
      throw new Error('a record could not be written', { cause });
    },
  });
}

async function lockOf(idempotency: Idempotency, request: IdempotentRequest): Promise<IdempotencyLock> {
  const begun = await idempotency.begin(request);
  if (!('lock' in begun)) throw new Error('no lock');
  return begun.lock;
}

/** Returns text that no compression makes smaller. */
const noise = (bytes: number): string => randomBytes(Math.ceil((bytes * 3) / 4)).toString('base64');
const large = JSON.stringify({
  data: Array.from({ length: 5000 }, (_, index) => ({ index, text: `ä line of text, number ${index}` })),
});

describe('an answer', () => {
  test('an answer is kept as it is up to a size, and compressed beyond it, under a state unknown to older processes', async () => {
    for (const [body, state] of [
      [noise(ANSWER_BYTES_MAX).slice(0, ANSWER_BYTES_MAX), 'done'],
      [large, 'packed'],
      ['x'.repeat(PACKED_BYTES_MAX), 'packed'],
    ] as const) {
      const records = keyedRecords();
      const request = aRequest();
      await (await lockOf(anIdempotency(records), request)).keep({ status: 201, body }, CHANGED);
      const [text = ''] = records.texts();
      expect(JSON.parse(text)).toMatchObject({ state });
      expect(text.length).toBeLessThan(ANSWER_BYTES_MAX * 1.4);
      // In another process.
      expect(await anIdempotency(records).begin(request)).toEqual({ replay: { status: 201, body } });
    }
  });

  test('a sealed answer is compressed first, and opens for its own caller only', async () => {
    const records = keyedRecords();
    const request = aRequest({ sealWith: 'a caller' });
    await (await lockOf(anIdempotency(records), request)).keep({ status: 201, body: large }, CHANGED);
    const [text = ''] = records.texts();
    const kept = JSON.parse(text) as { state: string; sealed: boolean; body: string };
    expect([kept.state, kept.sealed, text.length < large.length / 2]).toEqual(['packed', true, true]);
    // A gzip header would reveal that the value is not sealed.
    expect(kept.body.startsWith('H4sI')).toBe(false);
    expect(await anIdempotency(records).begin(request)).toEqual({ replay: { status: 201, body: large } });
    await expect(anIdempotency(records).begin({ ...request, sealWith: 'another' })).rejects.toMatchObject({
      code: 'idempotency_key_reused',
    });
  });

  test.each([
    ['does not shrink', noise(2 * ANSWER_BYTES_MAX)],
    ['is not even tried', 'x'.repeat(PACKED_BYTES_MAX + 1)],
  ])('an answer that %s is not kept: a change is not repeated, a read is', async (_what, body) => {
    const records = keyedRecords();
    const request = aRequest();
    await (await lockOf(anIdempotency(records), request)).keep({ status: 200, body }, CHANGED);
    await expect(anIdempotency(records).begin(request)).rejects.toMatchObject({
      code: 'conflict',
      detail: expect.stringMatching(/carried out.*too large to store/) as unknown,
    });
    await expect(anIdempotency(records).begin({ ...request, body: 'c' })).rejects.toMatchObject({
      code: 'idempotency_key_reused',
    });
    expect(records.texts().join()).not.toContain(body.slice(0, 100));

    const reading = aRequest();
    await (await lockOf(anIdempotency(records), reading)).keep({ status: 200, body }, READ);
    expect(await anIdempotency(records).begin(reading)).toHaveProperty('lock');
  });
});

describe('a request that is only marked', () => {
  test('a marked request runs again with the same body, and is rejected with another', async () => {
    const records = keyedRecords();
    const request = aRequest();
    await anIdempotency(records).mark(request);
    await anIdempotency(records).mark(request);
    await expect(anIdempotency(records).mark({ ...request, body: 'c' })).rejects.toMatchObject({
      code: 'idempotency_key_reused',
    });
  });

  test('a marked request that failed releases its key; a repeat that failed does not', async () => {
    const records = keyedRecords();
    const request = aRequest();
    const free = await anIdempotency(records).mark(request);
    await free();
    expect(records.texts()).toEqual([]);
    await anIdempotency(records).mark({ ...request, body: 'c' });
    const freeAgain = await anIdempotency(records).mark({ ...request, body: 'c' });
    await freeAgain();
    await expect(anIdempotency(records).mark(request)).rejects.toMatchObject({ code: 'idempotency_key_reused' });
  });
});
