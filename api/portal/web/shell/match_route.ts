// Finds the route of an address. Segments are decoded one by one, so that an id may hold a slash.
// Pure.

interface Match<R> {
  route: R;
  params: Readonly<Record<string, string>>;
}

/**
 * Returns the first route whose path matches, with the decoded parts of the address; null without one.
 * @param path location.pathname as it is, still encoded
 */
export function matchRoute<R extends { path: string }>(routes: readonly R[], path: string): Match<R> | null {
  const parts = segments(path);
  for (const route of routes) {
    const params = paramsOf(segments(route.path), parts);
    if (params !== null) return { route, params };
  }
  return null;
}

const segments = (path: string): string[] => path.split('/').filter((part) => part !== '');

function paramsOf(wanted: readonly string[], parts: readonly string[]): Record<string, string> | null {
  if (wanted.length !== parts.length) return null;
  const params: Record<string, string> = {};
  for (const [at, want] of wanted.entries()) {
    const part = parts[at] ?? '';
    if (want.startsWith(':')) params[want.slice(1)] = decoded(part);
    else if (want !== part) return null;
  }
  return params;
}

/** Returns a segment decoded; one with an invalid encoding stays as it is. */
function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
