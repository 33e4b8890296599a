// The hits of a search by trace, in the order of their best hit. Pure.

export interface Hit {
  span_id: string;
  trace_id: string;
  score: number;
}

export interface HitGroup<H extends Hit> {
  trace_id: string;
  /** Best first. */
  hits: readonly H[];
}

/** Returns one group per trace. */
export function groupHits<H extends Hit>(hits: readonly H[]): HitGroup<H>[] {
  const groups = new Map<string, H[]>();
  for (const hit of hits) {
    const known = groups.get(hit.trace_id);
    if (known === undefined) groups.set(hit.trace_id, [hit]);
    else known.push(hit);
  }
  return [...groups].map(([trace_id, of_trace]) => ({ trace_id, hits: of_trace }));
}

/** Returns the hits that are shown: the best of each trace, and all of those that are unfolded. */
export function shownHits<H extends Hit>(groups: readonly HitGroup<H>[], unfolded: ReadonlySet<string>): H[] {
  return groups.flatMap(({ trace_id, hits }) => (unfolded.has(trace_id) ? hits : hits.slice(0, 1)));
}

/** Returns how often each value occurs, the commonest first. */
export function valueCounts(values: readonly (string | null)[]): { value: string; hits: number }[] {
  const counts = new Map<string, number>();
  for (const value of values) if (value !== null && value !== '') counts.set(value, (counts.get(value) ?? 0) + 1);
  return [...counts].map(([value, hits]) => ({ value, hits })).toSorted((a, b) => b.hits - a.hits);
}
