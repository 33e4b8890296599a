// The request behind what the page shows, which `y` copies as a curl line. Each screen sets its own.
import { useEffect } from 'react';

let current: (() => string) | null = null;

/** Names the request of the page. */
export function usePageRequest(address: string): void {
  useEffect(() => {
    const line = (): string => curlLine(address);
    current = line;
    return () => {
      if (current === line) current = null;
    };
  }, [address]);
}

/** Returns the curl line of the page; null where the page has none. */
export const pageCurl = (): string | null => current?.() ?? null;

/**
 * Returns the command for a GET of the API.
 * @param address path and query of the request, for example /v1/traces?outcome=error
 */
function curlLine(address: string): string {
  const org_id = /^\/o\/([^/]+)/.exec(location.pathname)?.[1] ?? '';
  return `curl -s '${location.origin}${address.replaceAll("'", '%27')}' -H "Authorization: Bearer $MILLRACE_API_KEY" -H 'X-Org-Id: ${decodeURIComponent(org_id)}'`;
}
