// Splits the ids of rows into requests for their activity that the API accepts. Pure.
import { escapedValue } from '../../lists/list_url.ts';

/** Ids in one request, as the API accepts them. */
export const IDS_MAX = 50;
/** Longest id that the API accepts as a value. A row with a longer one has no sparkline. */
const ID_CHARS_MAX = 1024;
/** Bytes of the ids in an address; servers accept 16 KiB of address and headers together. */
const ADDRESS_BYTES_MAX = 6000;

/** Returns the ids of each request. */
export function activityRequests(ids: readonly string[]): string[][] {
  const requests: string[][] = [];
  let bytes = Infinity;
  for (const id of ids.filter((one) => one !== '' && one.length <= ID_CHARS_MAX)) {
    const own = encodeURIComponent(escapedValue(id)).length + encodeURIComponent(',').length;
    if (bytes + own > ADDRESS_BYTES_MAX || requests.at(-1)?.length === IDS_MAX) {
      requests.push([]);
      bytes = 0;
    }
    requests.at(-1)?.push(id);
    bytes += own;
  }
  return requests;
}
