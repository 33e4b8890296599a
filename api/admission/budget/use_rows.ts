// The format in which API processes send each other the use of events.
import { z } from 'zod';
import type { AskedUse } from '../../../pipeline/domain/budgets/usage_ledger.ts';

const count = z.number();
/** Agent, partition, hour, tokens, bytes, microseconds of sandboxes, pico-USD. */
export const useRow = z.tuple([z.string(), count, count, count, count, count, z.string().regex(/^-?\d+$/)]);
export type UseRow = z.infer<typeof useRow>;

export const rowOf = ({
  agent_id,
  partition,
  hour,
  tokens,
  storage_bytes,
  sandbox_micros,
  cost_pico_usd,
}: AskedUse): UseRow => [agent_id, partition, hour, tokens, storage_bytes, sandbox_micros, String(cost_pico_usd)];

export const useOf = ([agent_id, partition, hour, tokens, storage_bytes, sandbox_micros, cost]: UseRow): AskedUse => ({
  agent_id,
  partition,
  hour,
  tokens,
  storage_bytes,
  sandbox_micros,
  cost_pico_usd: BigInt(cost),
});
