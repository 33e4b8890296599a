// Answers while a shard of the store is away: who gets them, and what they say.
import { expect, it } from 'vitest';
import { ApiError } from '../../../api/http/errors.ts';
import { answerWithWhatIsThere } from '../../../api/http/partial_answers.ts';
import type { AnyContext, Route } from '../../../api/http/route.ts';
import { StoreUnavailable } from '../../../sql/client/client.ts';
import { isPartialAllowed, notePartial } from '../../../sql/client/partial.ts';

const CONTEXT = {} as AnyContext;
const routeOf = (handler: () => Promise<unknown>, more: Partial<Route> = {}): Route =>
  ({ ...more, handler }) as unknown as Route;
/** A read that lacks the rows of a shard, if its caller takes it. */
function read(): void {
  if (!isPartialAllowed()) throw new StoreUnavailable('a shard is away');
  notePartial();
}

it('an answer that lacks rows says so', async () => {
  const route = routeOf(() => {
    read();
    return Promise.resolve({ data: [1], meta: { total: 1, partial: false } });
  });
  expect(await answerWithWhatIsThere(route, CONTEXT)).toEqual({ data: [1], meta: { total: 1, partial: true } });
});

it('an answer with all rows stays as it is', async () => {
  const answer = { data: [1], meta: { total: 1 } };
  expect(
    await answerWithWhatIsThere(
      routeOf(() => Promise.resolve(answer)),
      CONTEXT,
    ),
  ).toBe(answer);
});

it('what is not found may be in the shard that is away', async () => {
  const missing = (): Promise<never> => Promise.reject(new ApiError('trace_not_found', 'no such trace'));
  const partly = routeOf(() => {
    read();
    return missing();
  });
  await expect(answerWithWhatIsThere(partly, CONTEXT)).rejects.toThrow(StoreUnavailable);
  await expect(answerWithWhatIsThere(routeOf(missing), CONTEXT)).rejects.toThrow(ApiError);
});

it.each([[{ bare: true }], [{ media: ['application/x-ndjson'] }]])(
  'an answer without meta is whole or fails: %j',
  async (more) => {
    const route = routeOf(async () => {
      await Promise.resolve();
      read();
      return { bare: {} };
    }, more);
    await expect(answerWithWhatIsThere(route, CONTEXT)).rejects.toThrow('a shard is away');
  },
);
