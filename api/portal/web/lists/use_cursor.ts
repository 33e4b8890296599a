// The row of a list that the keyboard acts on. It is kept by id, so that rows which arrive above it do
// not move it, and per address, so that Back finds it again.
import { useCallback, useState } from 'react';

const KEPT_MAX = 30;
const kept = new Map<string, string>();

function keep(address: string, id: string): void {
  kept.delete(address);
  kept.set(address, id);
  for (const [oldest] of kept) {
    if (kept.size <= KEPT_MAX) break;
    kept.delete(oldest);
  }
}

/**
 * Returns the index of the active row, −1 without one, and the function that makes a row active.
 * @param address names the list, for example its query
 */
export function useCursor(
  ids: readonly string[],
  address: string,
): { cursor: number; active: string | null; setCursor: (index: number) => void } {
  const [chosen, setChosen] = useState<{ address: string; id: string } | null>(null);
  const active = chosen !== null && chosen.address === address ? chosen.id : (kept.get(address) ?? null);
  const cursor = active === null ? -1 : ids.indexOf(active);
  const setCursor = useCallback(
    (index: number) => {
      const id = ids[index];
      if (id === undefined) return;
      keep(address, id);
      setChosen({ address, id });
    },
    [ids, address],
  );
  return { cursor, active: cursor === -1 ? null : active, setCursor };
}
