// Names of the accounts of use. An organization has the account of its id; an API key with limits has
// one for its budget and one for each of its rates. Ids contain no line break, so no names collide.
// Pure.

const KEY = 'key';
/** Rates of a key: requests and tokens within a minute. */
type RateKind = 'requests' | 'tokens';

/** Returns the account of a key's budget. */
export const keyAccount = (org_id: string, key_id: string): string => `${KEY}\n${org_id}\n${key_id}`;

/** Returns the account of a rate of a key. */
export const rateAccount = (kind: RateKind, org_id: string, key_id: string): string => `${kind}\n${org_id}\n${key_id}`;

/** An account of a key. */
export interface KeyAccount {
  kind: 'budget' | RateKind;
  org_id: string;
  key_id: string;
}

/** Returns whose account it is; null for the account of an organization. */
export function keyOfAccount(account: string): KeyAccount | null {
  const [kind = '', org_id, key_id] = account.split('\n');
  if (org_id === undefined || key_id === undefined) return null;
  return { kind: kind === KEY ? 'budget' : (kind as RateKind), org_id, key_id };
}

/** Returns true for the account of a rate. */
export const isRateAccount = (account: string): boolean =>
  account.startsWith('requests\n') || account.startsWith('tokens\n');

/** Returns the accounts whose sums in the store count an event. */
export function accountsOf({ org_id, key_id = '' }: { org_id: string; key_id?: string }): string[] {
  return key_id === '' ? [org_id] : [org_id, keyAccount(org_id, key_id)];
}
