// Answers to reads while a shard of the store is away: with what the others have, which meta.partial says.
import { StoreUnavailable } from '../../sql/client/client.ts';
import { allowPartial } from '../../sql/client/partial.ts';
import { ApiError, STATUS_OF } from './errors.ts';
import type { AnyContext, Route } from './route.ts';

/**
 * Runs the handler of a route that changes nothing. Answers without meta cannot say that rows are missing, so their
 * reads must be whole.
 * @throws what the handler throws; StoreUnavailable in place of a 404 if the shards that are there do not have it
 */
export function answerWithWhatIsThere(route: Route, ctx: AnyContext): ReturnType<Route['handler']> {
  if (route.bare === true || route.media !== undefined) return route.handler(ctx);
  return allowPartial(async (isPartial) => {
    try {
      const result = await route.handler(ctx);
      return 'data' in result && isPartial() ? { ...result, meta: { ...result.meta, partial: true } } : result;
    } catch (error) {
      if (isPartial() && error instanceof ApiError && STATUS_OF[error.code] === 404)
        throw new StoreUnavailable('a shard of the store does not answer', { cause: error });
      throw error;
    }
  });
}
