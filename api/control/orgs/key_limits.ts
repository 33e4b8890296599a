// Lists API keys with what they used, and sets their limits.
import { keyPeriodAt } from '../../../pipeline/domain/budgets/period.ts';
import { picoToUsd, usdToPico } from '../../../pipeline/domain/pricing/money.ts';
import { type KeyLimits, type KeyRecord, limitsOfKey, NO_KEY_LIMITS } from '../../../schemas/records/api_key.ts';
import type { ClickHouse } from '../../../sql/client/client.ts';
import { readKeySums } from '../../../sql/stores/usage.ts';
import type { OrgCredential } from '../../http/credential.ts';
import { ApiError } from '../../http/errors.ts';
import { checkMayLimit, givenLimits } from './key_limit_rules.ts';
import { storeUnavailable } from './orgs.ts';
import type { GivenKeyLimits, KeyItem, KeyUse } from './key_schema.ts';
import type { KeyStore } from './store.ts';

export interface KeyLimitsDeps {
  keys: KeyStore;
  clickhouse: ClickHouse;
  /** Milliseconds since the epoch. */
  now: () => number;
  /** Resolves when the stored limits of a key apply to what this process admits, after a bounded time. */
  keyInForce: (org_id: string, key_id: string) => Promise<void>;
}

type KeySums = Awaited<ReturnType<typeof readKeySums>>[number];

/** Returns the keys of an organization, newest first; their use is null while the store is unavailable. */
export async function listKeys(deps: KeyLimitsDeps, org_id: string): Promise<KeyItem[]> {
  const keys = deps.keys.list(org_id);
  const sums = await sumsOf(deps, org_id).catch(() => null);
  return keys.map((key) => keyItemOf(deps, key, sums));
}

async function sumsOf({ clickhouse, now }: KeyLimitsDeps, org_id: string): Promise<Map<string, KeySums>> {
  const [day, week, month] = (['day', 'week', 'month'] as const).map((kind) => keyPeriodAt(kind, now()).start);
  const rows = await readKeySums(clickhouse, { org_id, day: day ?? 0, week: week ?? 0, month: month ?? 0 });
  return new Map(rows.map((row) => [row.key_id, row]));
}

function keyItemOf(deps: KeyLimitsDeps, key: KeyRecord, sums: Map<string, KeySums> | null): KeyItem {
  const { id, name, key_prefix, scopes, created_at, created_by, capture } = key;
  return {
    id,
    name,
    key_prefix,
    scopes,
    created_at,
    created_by: created_by?.user_id ?? null,
    status: deps.keys.statusOf(key),
    ...(limitsOfKey(key) ?? NO_KEY_LIMITS),
    capture: capture ?? 'full',
    use: sums === null ? null : useOf(key, sums.get(id), deps.now()),
  };
}

/** Returns what a key used in the period of its budget, or in this month where it has none. */
function useOf({ budget }: KeyRecord, sums: KeySums | undefined, now: number): KeyUse {
  const period = budget?.period ?? 'month';
  const { start, end } = keyPeriodAt(period, now);
  const cost_usd = picoToUsd(usdToPico(sums?.[`${period}_cost_usd`] ?? '0'));
  const tokens = sums?.[`${period}_tokens`] ?? 0;
  const amount = budget?.resource === 'tokens' ? tokens : cost_usd;
  const share = budget === null ? 0 : budget.hard_limit === 0 ? 100 : (amount * 100) / budget.hard_limit;
  return {
    period,
    period_start: new Date(start).toISOString(),
    period_end: new Date(end).toISOString(),
    tokens,
    cost_usd,
    percentage: share,
    status: budget !== null && amount >= budget.hard_limit ? 'hard_exceeded' : 'ok',
  };
}

type SetFields = KeyLimits & Pick<KeyItem, 'capture'>;

const fieldsOf = (key: KeyRecord): SetFields => ({
  ...(limitsOfKey(key) ?? NO_KEY_LIMITS),
  capture: key.capture ?? 'full',
});

/**
 * Sets limits of a key: what is left out stays, null clears it.
 * @throws ApiError api_key_not_found, forbidden, upstream_unavailable
 */
export async function setKeyLimits(
  deps: KeyLimitsDeps,
  credential: OrgCredential,
  key_id: string,
  given: GivenKeyLimits,
): Promise<{ before: SetFields; after: SetFields; key: KeyItem }> {
  const { org_id } = credential;
  const { capture, ...limits } = given;
  checkMayLimit(credential);
  const changed = await deps.keys
    .change(org_id, key_id, (record) => ({
      ...record,
      ...givenLimits(limits),
      ...(capture === undefined ? {} : { capture }),
    }))
    .catch((error: unknown) => {
      throw storeUnavailable(error);
    });
  if (changed === null) throw new ApiError('api_key_not_found', 'The organization has no API key with this id.');
  const { before, after } = changed;
  if (after.budget !== null) await deps.keyInForce(org_id, key_id);
  const sums = await sumsOf(deps, org_id).catch(() => null);
  return {
    before: fieldsOf(before),
    after: fieldsOf(after),
    key: keyItemOf(deps, after, sums),
  };
}
