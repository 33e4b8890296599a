// A given score: what is stored and what is answered.
import { expect, test } from 'vitest';
import { giveScore } from '../../../api/telemetry/scores/scores.ts';
import type { UserScore } from '../../../schemas/codec.ts';
import { createClickHouse } from '../../../sql/client/client.ts';

const given = async (comment: string | null | undefined) => {
  const stored: UserScore[] = [];
  const deps = {
    // The store is not queried when no span is named.
    clickhouse: createClickHouse({ url: 'http://127.0.0.1:1' }),
    locate: () => Promise.resolve({ from_ms: 1, to_ms: 2 }),
    queue: (score: UserScore) => {
      stored.push(score);
      return Promise.resolve();
    },
    queuePending: () => Promise.reject(new Error('the trace has arrived')),
    now: () => 0,
  };
  const body = { trace_id: 'trc_1', name: 'helpful', value: true, comment };
  const answer = await giveScore(deps, 'org_a', body, { type: 'user', id: 'u' }, new AbortController().signal);
  await deps.clickhouse.close();
  return { answered: answer.comment, stored: stored[0]?.comment };
};

test.each([
  ['Found it at once', 'Found it at once', 'Found it at once'],
  ['', null, ''],
  [null, null, ''],
  [undefined, null, ''],
])('the comment %j is answered as it will be listed: %j', async (comment, answered, stored) => {
  expect(await given(comment)).toEqual({ answered, stored });
});
