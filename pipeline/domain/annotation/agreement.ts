// Agreement between people who answered the same items. Takes values by item and person, and
// returns percent agreement and Cohen's kappa. Pure.
//
// Percent agreement: of all pairs of people that answered one item, the share that gave the same
// value. Cohen's kappa of two people: (p_o - p_e) / (1 - p_e), where p_o is the share of their
// common items with the same value and p_e the share that chance would give them by how often each
// of them chose each value (J. Cohen, "A coefficient of agreement for nominal scales", Educational
// and Psychological Measurement 20 (1960) 37-46). With more than two people it is the mean over the
// pairs of people, each weighted by the items that they share.

/** The value that one person gave one item, as text: two values agree when they are equal. */
export interface Rating {
  item: string;
  person: string;
  value: string;
}

export interface Agreement {
  /** Items with values of two or more people. */
  items: number;
  /** Items whose people gave different values. */
  disagreed: string[];
  /** Share of pairs of values that are equal, 0 to 1; null without such items. */
  percent: number | null;
  /** -1 to 1; null without such items, and where chance alone gives full agreement. */
  kappa: number | null;
}

export function agreementOf(ratings: readonly Rating[]): Agreement {
  const byItem = Map.groupBy(ratings, ({ item }) => item);
  const pairs = new Map<string, [string, string][]>();
  const disagreed: string[] = [];
  let [items, equal, compared] = [0, 0, 0];
  for (const [item, given] of byItem) {
    if (given.length < 2) continue;
    items += 1;
    const sorted = given.toSorted((a, b) => (a.person < b.person ? -1 : 1));
    if (sorted.some(({ value }) => value !== sorted[0]?.value)) disagreed.push(item);
    sorted.forEach((a, i) => {
      for (const b of sorted.slice(i + 1)) {
        compared += 1;
        if (a.value === b.value) equal += 1;
        const key = JSON.stringify([a.person, b.person]);
        const values = pairs.get(key) ?? [];
        values.push([a.value, b.value]);
        pairs.set(key, values);
      }
    });
  }
  return { items, disagreed, percent: compared === 0 ? null : equal / compared, kappa: meanKappa([...pairs.values()]) };
}

function meanKappa(pairs: readonly (readonly [string, string][])[]): number | null {
  let [sum, weight] = [0, 0];
  for (const values of pairs) {
    const kappa = cohensKappa(values);
    if (kappa === null) continue;
    sum += kappa * values.length;
    weight += values.length;
  }
  return weight === 0 ? null : sum / weight;
}

/** Returns the kappa of two people, whose values are given item by item. */
function cohensKappa(values: readonly (readonly [string, string])[]): number | null {
  const n = values.length;
  const [first, second] = [new Map<string, number>(), new Map<string, number>()];
  let same = 0;
  for (const [a, b] of values) {
    if (a === b) same += 1;
    first.set(a, (first.get(a) ?? 0) + 1);
    second.set(b, (second.get(b) ?? 0) + 1);
  }
  let chance = 0;
  for (const [value, count] of first) chance += (count / n) * ((second.get(value) ?? 0) / n);
  return chance >= 1 ? null : (same / n - chance) / (1 - chance);
}
