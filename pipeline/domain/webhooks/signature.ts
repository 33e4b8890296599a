// Signs webhook deliveries. Pure: the time is an argument.
import { createHmac } from 'node:crypto';

/** Receivers reject a signature that is older or newer than this many seconds. */
export const SIGNATURE_AGE_MAX_SECONDS = 300;

/**
 * Returns the value of X-Service-Signature: t=<unix>,v1=<hex HMAC-SHA256 of "<t>.<body>">, one v1
 * for each valid secret, the newest first.
 * @param secrets at least one, the newest first
 * @param body the bytes that are sent
 * @param nowMs milliseconds since the epoch
 */
export function signatureOf(secrets: readonly string[], body: Uint8Array, nowMs: number): string {
  const t = String(Math.floor(nowMs / 1000));
  const hex = (secret: string) => createHmac('sha256', secret).update(`${t}.`).update(body).digest('hex');
  return [`t=${t}`, ...secrets.map((secret) => `v1=${hex(secret)}`)].join(',');
}
