// Answers that hold a secret (a raw key) are kept sealed: AES-256-GCM under a key made of the Idempotency-Key and the caller's
// credential. The store has neither in clear, so nobody who reads it can open what it keeps.
import { createCipheriv, createDecipheriv, hash, randomBytes } from 'node:crypto';

const IV_BYTES = 12;
const TAG_BYTES = 16;

/** What opens a sealed answer again. */
export interface Seal {
  /** The Idempotency-Key. */
  key: string;
  /** What only the caller has. */
  caller: string;
}

function sealingKey({ key, caller }: Seal): Buffer {
  return hash('sha256', `sealed answer\0${caller}\0${key}`, 'buffer');
}

/** Base64 of what opens only with the same seal. */
export function sealBytes(bytes: Uint8Array, seal: Seal): string {
  const iv = randomBytes(IV_BYTES);
  const cipher = createCipheriv('aes-256-gcm', sealingKey(seal), iv);
  const sealed = Buffer.concat([cipher.update(bytes), cipher.final()]);
  return Buffer.concat([iv, cipher.getAuthTag(), sealed]).toString('base64');
}

/** The bytes; null when they were sealed otherwise. */
export function openBytes(sealed: string, seal: Seal): Buffer | null {
  const bytes = Buffer.from(sealed, 'base64');
  const decipher = createDecipheriv('aes-256-gcm', sealingKey(seal), bytes.subarray(0, IV_BYTES));
  decipher.setAuthTag(bytes.subarray(IV_BYTES, IV_BYTES + TAG_BYTES));
  try {
    return Buffer.concat([decipher.update(bytes.subarray(IV_BYTES + TAG_BYTES)), decipher.final()]);
  } catch {
    return null;
  }
}
