// The request behind what the page shows, which `y` copies as a curl line. Each screen sets its own.
import { useEffect } from 'react';

let current: (() => string) | null = null;

/**
 * Names the request of the page.
 * @param body body of a POST; absent: the request is a GET
 */
export function usePageRequest(address: string, body?: object): void {
  const sent = body === undefined ? null : JSON.stringify(body);
  useEffect(() => {
    const line = (): string => curlLine(address, sent);
    current = line;
    return () => {
      if (current === line) current = null;
    };
  }, [address, sent]);
}

/** Returns the curl line of the page; null where the page has none. */
export const pageCurl = (): string | null => current?.() ?? null;

/**
 * Returns the command for a request of the API.
 * @param address path and query of the request, for example /v1/traces?outcome=error
 * @param body JSON text that a POST sends; null for a GET
 */
function curlLine(address: string, body: string | null): string {
  const command = `curl -s '${location.origin}${address.replaceAll("'", '%27')}'`;
  if (address.startsWith('/admin/')) return `${command} -H "Authorization: Bearer $SERVICE_ADMIN_TOKEN"`;
  const org_id = /^\/o\/([^/]+)/.exec(location.pathname)?.[1] ?? '';
  const line = `${command} -H "Authorization: Bearer $MILLRACE_API_KEY" -H 'X-Org-Id: ${decodeURIComponent(org_id)}'`;
  if (body === null) return line;
  // A quote within the body ends the quoted text, stands for itself, and begins it again.
  return `${line} -H 'Content-Type: application/json' -d '${body.replaceAll("'", "'\\''")}'`;
}
