// Changes of items that are not saved yet. Pure.
import type { Changes } from './dataset_api.ts';
import type { NewItem } from './new_item.ts';

export interface Drafts {
  replaced: ReadonlyMap<number, NewItem>;
  removed: ReadonlySet<number>;
  added: readonly NewItem[];
}

export const NO_DRAFTS: Drafts = { replaced: new Map(), removed: new Set(), added: [] };

export const countDrafts = ({ replaced, removed, added }: Drafts): number =>
  replaced.size + removed.size + added.length;

/** Returns the changes as the API takes them. */
export const changesOf = ({ replaced, removed, added }: Drafts): Changes => ({
  add: added,
  remove: [...removed],
  replace: [...replaced].map(([item_index, item]) => ({ item_index, ...item })),
});

/** Returns the drafts with an item in the place of another one. */
export function withItem(drafts: Drafts, index: number, item: NewItem): Drafts {
  return { ...drafts, replaced: new Map(drafts.replaced).set(index, item), removed: without(drafts.removed, index) };
}

/** Returns the drafts with an item removed, or with its removal taken back. */
export function withRemoval(drafts: Drafts, index: number): Drafts {
  const replaced = new Map(drafts.replaced);
  replaced.delete(index);
  const isGone = drafts.removed.has(index);
  return {
    ...drafts,
    replaced,
    removed: isGone ? without(drafts.removed, index) : new Set([...drafts.removed, index]),
  };
}

export const withAdded = (drafts: Drafts, item: NewItem): Drafts => ({ ...drafts, added: [...drafts.added, item] });

const without = (indexes: ReadonlySet<number>, index: number): Set<number> =>
  new Set([...indexes].filter((one) => one !== index));
