// Which entries of the palette match what was typed, and in which order; and where a pasted id
// leads. Pure.

export interface Entry {
  /** Stable name, under which uses are counted. */
  id: string;
  label: string;
  group: string;
  aside?: string;
}

/** Times that a person chose each entry in this browser, by id. */
export type Uses = Readonly<Record<string, number>>;

const SHOWN_MAX = 50;

/**
 * Returns how well a text matches: higher is better, 0 is no match. Every word of the query must
 * begin a word of the text, or stand within it.
 */
export function matchScore(label: string, query: string): number {
  const text = label.toLowerCase();
  const words = query
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== '');
  let score = 1;
  for (const word of words) {
    const at = text.indexOf(word);
    if (at === -1) return 0;
    score += at === 0 ? 4 : /[^\p{L}\p{N}]/u.test(text.charAt(at - 1)) ? 3 : 1;
  }
  return score;
}

/** Returns the matching entries, the best and most used first; entries of a group stay together. */
export function rank<E extends Entry>(entries: readonly E[], query: string, uses: Uses): E[] {
  const scored = entries
    .map((entry, at) => ({ entry, at, score: matchScore(entry.label, query) + Math.min(2, (uses[entry.id] ?? 0) / 5) }))
    .filter(({ entry }) => matchScore(entry.label, query) > 0)
    .toSorted((a, b) => b.score - a.score || a.at - b.at)
    .slice(0, SHOWN_MAX);
  const groups = [...new Set(scored.map(({ entry }) => entry.group))];
  return groups.flatMap((group) => scored.filter(({ entry }) => entry.group === group).map(({ entry }) => entry));
}

/** A page that a typed or pasted text may name. */
export interface Target {
  label: string;
  /** Path below /o/{org_id}. */
  path: string;
}

/** Kinds of things by the prefix of their id, with the path of the page and the permission to read it. */
const KINDS: readonly { prefix: string; name: string; path: string }[] = [
  { prefix: 'trc_', name: 'trace', path: '/traces/' },
  { prefix: 'agent_', name: 'agent', path: '/agents/' },
  { prefix: 'inc_', name: 'incident', path: '/incidents/' },
  { prefix: 'eval_', name: 'eval', path: '/evals/' },
  { prefix: 'judge_', name: 'judge', path: '/judges/' },
  { prefix: 'ds_', name: 'dataset', path: '/datasets/' },
  { prefix: 'wh_', name: 'webhook endpoint', path: '/webhooks/' },
  { prefix: 'job_', name: 'job', path: '/jobs/' },
];
const ID_SHAPE = /^[A-Za-z0-9_.:-]{6,128}$/;

/**
 * Returns the pages that a text may lead to: `?words` searches; an id opens its thing. An id without
 * a known prefix may name a trace, a session or a user, since clients choose those freely.
 * @param exists returns true for a path of the table of routes, for example /traces/:id
 */
export function targetsOf(typed: string, exists: (path: string) => boolean): Target[] {
  const text = typed.trim();
  if (text.startsWith('?')) {
    const words = text.slice(1).trim();
    return words === '' ? [] : [{ label: `Search for ${words}`, path: `/search?q=${encodeURIComponent(words)}` }];
  }
  if (!ID_SHAPE.test(text)) return [];
  const kind = KINDS.find(({ prefix, path }) => text.startsWith(prefix) && exists(path));
  const id = encodeURIComponent(text);
  if (kind !== undefined) return [{ label: `Open ${kind.name} ${text}`, path: kind.path + id }];
  if (!/\d/.test(text)) return [];
  return [
    { label: `Open trace ${text}`, path: `/traces/${id}` },
    { label: `Open session ${text}`, path: `/sessions/${id}` },
    { label: `Open user ${text}`, path: `/users/${id}` },
  ].filter(({ path }) => exists(path.slice(0, path.indexOf('/', 1) + 1)));
}
