// Seals secrets at rest with AES-256-GCM under SERVICE_ENCRYPTION_KEY. A sealed text is bound to
// the record it belongs to and opens nowhere else. Guarantees: every process of one NATS seals with
// the same key, or does not start.
import { createCipheriv, createDecipheriv, createHash, hkdfSync, randomBytes } from 'node:crypto';
import { decodeKey, EnvError } from './env.ts';
import { type Log, settle } from './nats/open_log.ts';

const ALGORITHM = 'aes-256-gcm';
export const KEY_BYTES = 32;
const IV_BYTES = 12;
const TAG_BYTES = 16;
/** Prefix of sealed texts, which tells a later format from this one. */
const VERSION = 'v1.';

/** A sealed text was sealed with another key or for another record, or was changed. */
export class SealBroken extends Error {}

export class Sealer {
  readonly #key: Buffer;

  /** @param key 32 bytes */
  constructor(key: Buffer) {
    this.#key = key;
  }

  /**
   * Seals a text. @param context names the record that the text belongs to; opening takes the same
   * context
   */
  seal(text: string, context: string): string {
    const iv = randomBytes(IV_BYTES);
    const cipher = createCipheriv(ALGORITHM, this.#key, iv).setAAD(Buffer.from(context));
    const sealed = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
    return VERSION + Buffer.concat([iv, cipher.getAuthTag(), sealed]).toString('base64url');
  }

  /**
   * Returns 32 bytes that are derived from the key for one purpose (HKDF). They reveal nothing of the key, nor of the
   * bytes for another purpose.
   */
  derive(purpose: string): Buffer {
    return Buffer.from(hkdfSync('sha256', this.#key, '', purpose, KEY_BYTES));
  }

  /** Opens a sealed text. @throws SealBroken */
  open(sealed: string, context: string): string {
    try {
      if (!sealed.startsWith(VERSION)) throw new SealBroken('sealed in an unknown way');
      const bytes = Buffer.from(sealed.slice(VERSION.length), 'base64url');
      const tag = bytes.subarray(IV_BYTES, IV_BYTES + TAG_BYTES);
      const decipher = createDecipheriv(ALGORITHM, this.#key, bytes.subarray(0, IV_BYTES))
        .setAAD(Buffer.from(context))
        .setAuthTag(tag);
      return Buffer.concat([decipher.update(bytes.subarray(IV_BYTES + TAG_BYTES)), decipher.final()]).toString('utf8');
    } catch (cause) {
      throw cause instanceof SealBroken
        ? cause
        : new SealBroken('a sealed secret does not open: another key, or another owner', { cause });
    }
  }
}

/** Returns the public name of a key: it tells keys apart and opens nothing. */
const nameOf = (key: Buffer): string =>
  createHash('sha256').update('name of an encryption key\n').update(key).digest('hex').slice(0, 16);

/**
 * The fact that all processes share: the name of the key, and the key itself where no setting gives
 * one.
 */
interface Settled {
  name: string;
  key?: string;
}

/**
 * Returns the sealer of this process. Without a setting, the processes of one NATS share a key that
 * the first of them generates. That key lies beside what it seals, so an operator who stores
 * backups of NATS elsewhere sets one.
 * @throws EnvError when the key is missing, or differs from the key that sealed the secrets in this
 * NATS
 */
export async function openSealer(log: Log, setting: string | undefined): Promise<Sealer> {
  const own = setting === undefined ? null : decodeKey(setting);
  const settled = await settle<Settled>(log, 'encryption', () => {
    if (own !== null) return Promise.resolve({ name: nameOf(own) });
    const made = randomBytes(KEY_BYTES);
    return Promise.resolve({ name: nameOf(made), key: made.toString('base64') });
  });
  const key = own ?? (settled.key === undefined ? null : Buffer.from(settled.key, 'base64'));
  if (key === null)
    throw new EnvError(
      'SERVICE_ENCRYPTION_KEY: got nothing; must be the key that the other processes of this NATS have',
    );
  if (nameOf(key) !== settled.name)
    throw new EnvError(
      'SERVICE_ENCRYPTION_KEY: got another key than the secrets in this NATS are sealed with; must be that one',
    );
  return new Sealer(key);
}
