// Secrets at rest: AES-256-GCM under SERVICE_ENCRYPTION_KEY, bound to what they belong to, so that what is copied elsewhere
// does not open there. Guarantees: every process of one NATS seals with the same key, or does not start.
import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto';
import { decodeKey, EnvError } from './env.ts';
import { type Log, settle } from './nats/open_log.ts';

const ALGORITHM = 'aes-256-gcm';
export const KEY_BYTES = 32;
const IV_BYTES = 12;
const TAG_BYTES = 16;
/** What sealed texts begin with: tells a later way of sealing from this one. */
const VERSION = 'v1.';

/** What was sealed was sealed with another key, for something else, or was changed. */
export class SealBroken extends Error {}

export class Sealer {
  readonly #key: Buffer;

  /** @param key 32 bytes */
  constructor(key: Buffer) {
    this.#key = key;
  }

  /** @param context what it belongs to; the same has to be given to open it */
  seal(text: string, context: string): string {
    const iv = randomBytes(IV_BYTES);
    const cipher = createCipheriv(ALGORITHM, this.#key, iv).setAAD(Buffer.from(context));
    const sealed = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
    return VERSION + Buffer.concat([iv, cipher.getAuthTag(), sealed]).toString('base64url');
  }

  /** @throws SealBroken */
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

/** What of the key is written down for all to see: tells keys apart, opens nothing. */
const nameOf = (key: Buffer): string =>
  createHash('sha256').update('name of an encryption key\n').update(key).digest('hex').slice(0, 16);

/** The fact that all processes share: which key it is; without a setting also the key itself. */
interface Settled {
  name: string;
  key?: string;
}

/**
 * The sealer of this process. Without a setting the processes of one NATS share a key that the first of them makes; it lies
 * beside what it seals, so whoever keeps NATS apart from its backups sets one.
 * @throws EnvError when the key is missing, or is another one than the secrets in this NATS are sealed with
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
    throw new EnvError('SERVICE_ENCRYPTION_KEY: got nothing; takes the key that the other processes of this NATS have');
  if (nameOf(key) !== settled.name)
    throw new EnvError(
      'SERVICE_ENCRYPTION_KEY: got another key than the secrets in this NATS are sealed with; takes that one',
    );
  return new Sealer(key);
}
