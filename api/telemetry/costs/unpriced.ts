// Lists the models whose calls cost nothing because no price is known.
import { dayOf } from '../../../pipeline/domain/time/days.ts';
import { readUnpriced } from '../../../sql/stores/costs.ts';
import type { CostDeps } from './costs.ts';
import type { Unpriced } from './schema.ts';

/** Maximum models of an answer. */
const MODELS_MAX = 200;

export async function listUnpriced(
  { clickhouse, now }: Pick<CostDeps, 'clickhouse' | 'now'>,
  org_id: string,
  days: number,
  signal: AbortSignal,
): Promise<Unpriced> {
  const until = dayOf(now()) + 1;
  const rows = await readUnpriced(clickhouse, { org_id, from: until - days, until, rows: MODELS_MAX }, { signal });
  return rows.map(({ model, calls, tokens_in, tokens_out, last_ms }) => ({
    model,
    calls,
    input_tokens: tokens_in,
    output_tokens: tokens_out,
    last_call_at: new Date(last_ms).toISOString(),
  }));
}
