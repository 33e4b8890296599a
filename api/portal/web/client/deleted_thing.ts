// The reads of a thing that is being deleted while its page is open. A read that reaches the service after the
// deletion finds nothing and would be reported as an error, although nothing is wrong.
import type { QueryClient, QueryKey } from '@tanstack/react-query';

/** Returns true if the parameters of a read name the thing. @param id null names nothing */
export const namesThing = (queryKey: QueryKey, id: string | null): boolean =>
  id !== null && JSON.stringify(queryKey.slice(2)).includes(JSON.stringify(id));

/**
 * Deletes a thing after it has ended the reads that name it; they run again if the deletion fails.
 * @throws the error of the deletion
 */
export async function deleteThing<T>(cache: QueryClient, id: string, remove: () => Promise<T>): Promise<T> {
  const own = { predicate: ({ queryKey }: { queryKey: QueryKey }) => namesThing(queryKey, id) };
  await cache.cancelQueries(own);
  try {
    return await remove();
  } catch (error) {
    void cache.refetchQueries({ ...own, type: 'active' });
    throw error;
  }
}
