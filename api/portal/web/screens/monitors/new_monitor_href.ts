// The address that begins a new monitor from a chart or a list. It stands apart from the editor's code, because
// pages that only link to the editor load it. Pure.
import type { Draft } from './draft.ts';

/** Fields that an address can begin. */
const NAMES = ['view', 'measure', 'agg', 'group_by', 'window', 'side', 'limit', 'name', 'filters'] as const;

/** Names the filters of the page before that a monitor does not have. */
export const LEFT_OUT = 'left_out';

/**
 * Returns the address of the editor for a new monitor that begins with some fields.
 * @param left_out filters of the page that the monitor does not have
 */
export function newMonitorHref(
  org_id: string,
  from: Partial<Pick<Draft, (typeof NAMES)[number]>>,
  left_out: readonly string[] = [],
): string {
  const query = new URLSearchParams();
  for (const name of NAMES) {
    const value = from[name];
    if (value !== undefined) query.set(name, typeof value === 'string' ? value : JSON.stringify(value));
  }
  if (left_out.length > 0) query.set(LEFT_OUT, left_out.join(','));
  return `/o/${encodeURIComponent(org_id)}/monitors/new?${query}`;
}
