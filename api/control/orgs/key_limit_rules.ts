// Rules of the limits of API keys: who may set them, and which of a request are set.
import type { OperatorCredential, OrgCredential } from '../../http/credential.ts';
import { type KeyLimits, NO_KEY_LIMITS } from '../../../schemas/records/api_key.ts';
import { ApiError } from '../../http/errors.ts';

/** A key with limits may not free itself, or a key that it makes, from them. @throws ApiError forbidden */
export function checkMayLimit(credential: OrgCredential | OperatorCredential): void {
  if (credential.kind !== 'api_key' || credential.limits === undefined) return;
  const { models, requests_per_minute, tokens_per_minute, budget, expires_at } = credential.limits;
  if ([models, requests_per_minute, tokens_per_minute, budget, expires_at].every((limit) => limit === null)) return;
  throw new ApiError('forbidden', 'An API key with limits cannot create API keys or change their limits.');
}

/** Returns the limits that a request gives; what it leaves out is missing. */
export function givenLimits(given: { [K in keyof KeyLimits]?: KeyLimits[K] | undefined }): Partial<KeyLimits> {
  const names = Object.keys(NO_KEY_LIMITS) as (keyof KeyLimits)[];
  return Object.fromEntries(names.flatMap((name) => (given[name] === undefined ? [] : [[name, given[name]]])));
}
