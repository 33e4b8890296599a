// The way back from a page: the pages above it. Pure.

export interface Crumb {
  title: string;
  href: string;
}

/**
 * Returns the pages above an address, the outermost first.
 * @param path path of the page, for example /o/org_1/traces/trc_2
 * @param titles title by the path of each route, for example '/o/:org_id/traces'
 */
export function crumbsOf(path: string, titles: ReadonlyMap<string, string>): Crumb[] {
  const parts = path.split('/').filter((part) => part !== '');
  const crumbs: Crumb[] = [];
  // The first two parts are /o/{org_id}; the page itself is the title and no crumb.
  for (let end = 3; end < parts.length; end += 1) {
    const title = titles.get(['', 'o', ':org_id', ...parts.slice(2, end)].join('/'));
    if (title !== undefined) crumbs.push({ title, href: `/${parts.slice(0, end).join('/')}` });
  }
  return crumbs;
}
