// The format in which API processes send each other the use of events.
import type { AskedUse } from '../../../pipeline/domain/budgets/usage_ledger.ts';
import type { UseRow } from '../../../schemas/signals/reservations.ts';

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
