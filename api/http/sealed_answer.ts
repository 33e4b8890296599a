// Seals stored responses that hold a secret (a raw key): AES-256-GCM with a key derived from the
// Idempotency-Key and the caller's credential. The store holds neither in clear text, so nobody who
// reads it can open a sealed response.
import { createCipheriv, createDecipheriv, hash, randomBytes } from 'node:crypto';

const IV_BYTES = 12;
const TAG_BYTES = 16;

/** The values that open a sealed response. */
export interface Seal {
  /** The Idempotency-Key. */
  key: string;
  /** A value that only the caller has. */
  caller: string;
}

function sealingKey({ key, caller }: Seal): Buffer {
  return hash('sha256', `sealed answer\0${caller}\0${key}`, 'buffer');
}

/** Returns base64 that only the same seal opens. */
export function sealBytes(bytes: Uint8Array, seal: Seal): string {
  const iv = randomBytes(IV_BYTES);
  const cipher = createCipheriv('aes-256-gcm', sealingKey(seal), iv);
  const sealed = Buffer.concat([cipher.update(bytes), cipher.final()]);
  return Buffer.concat([iv, cipher.getAuthTag(), sealed]).toString('base64');
}

/** Returns the bytes; null when they were sealed with other values. */
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
