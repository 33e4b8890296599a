// Where to go after a login. Pure.

/**
 * Returns the path that was asked for first, if it is one of this service; else the first page.
 * A text such as //other.example or /\other.example would lead to another site.
 */
export function ownPath(asked: string | null, origin: string): string {
  if (asked?.startsWith('/') !== true) return '/';
  const url = URL.parse(asked, origin);
  if (url === null || url.origin !== origin || url.pathname === '/login') return '/';
  return url.pathname + url.search;
}
