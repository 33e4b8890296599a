// Files of a data folder for tools beside the service: the secrets, which the first start creates
// in secrets.json (mode 0600, never logged), and the addresses of the running service.
import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { z } from 'zod';

const shape = z.object({
  admin_token: z.string().min(16),
  api_key: z.string().startsWith('sk_svc_'),
  analyst_password: z.string().min(8),
  jwt_secret: z.string().min(32),
  clickhouse_app_password: z.string().min(16),
  nats_token: z.string().min(16),
  /**
   * Key of 32 bytes as base64. It encrypts values that must be readable again, such as webhook
   * secrets.
   */
  encryption_key: z.string().min(43),
  /** True once a start has shown the secrets. */
  shown: z.boolean(),
});

export type Secrets = z.infer<typeof shape>;

const newEncryptionKey = (): string => randomBytes(32).toString('base64');
const random = (bytes: number): string => randomBytes(bytes).toString('base64url');

/** Returns the path of a data folder's secrets. */
export const secretsFile = (dataDir: string): string => path.join(dataDir, 'secrets.json');

/**
 * Reads the secrets, or creates them.
 * @throws Error with one line when the file is unreadable or malformed
 */
export function loadSecrets(dataDir: string): Secrets {
  const file = secretsFile(dataDir);
  if (existsSync(file)) {
    try {
      const found = JSON.parse(readFileSync(file, 'utf8')) as object;
      // A file from before the encryption key existed gets one now.
      const secrets = shape.parse({ encryption_key: newEncryptionKey(), ...found });
      if (!('encryption_key' in found)) save(file, secrets);
      return secrets;
    } catch (error) {
      throw new Error(`${file} cannot be read as the service's secrets; restore it, or delete it to create new ones`, {
        cause: error,
      });
    }
  }
  const made: Secrets = {
    admin_token: random(24),
    // Letters, digits and underscores only, so that a double click selects the whole key.
    api_key: `sk_svc_${randomBytes(24).toString('hex')}`,
    analyst_password: randomBytes(12).toString('hex'),
    jwt_secret: random(36),
    clickhouse_app_password: randomBytes(24).toString('hex'),
    nats_token: randomBytes(24).toString('hex'),
    encryption_key: newEncryptionKey(),
    shown: false,
  };
  save(file, made);
  return made;
}

/** Records that the secrets were shown. */
export function markShown(dataDir: string, secrets: Secrets): void {
  save(secretsFile(dataDir), { ...secrets, shown: true });
}

function save(file: string, secrets: Secrets): void {
  writeFileSync(`${file}.new`, `${JSON.stringify(secrets, null, 2)}\n`, { mode: 0o600 });
  renameSync(`${file}.new`, file);
}

const addressesShape = z.object({ base_url: z.string(), org_id: z.string(), nats_port: z.number().nullable() });

/** Addresses of the service of a data folder; nats_port is null with an external NATS. */
export type ServiceAddresses = z.infer<typeof addressesShape>;

const addressesFile = (dataDir: string): string => path.join(dataDir, 'run', 'service.json');

export function writeAddresses(dataDir: string, addresses: ServiceAddresses): void {
  writeFileSync(addressesFile(dataDir), JSON.stringify(addresses));
}

/** @throws Error with one line when no service was started in this folder */
export function readAddresses(dataDir: string): ServiceAddresses {
  const file = addressesFile(dataDir);
  try {
    return addressesShape.parse(JSON.parse(readFileSync(file, 'utf8')));
  } catch (error) {
    throw new Error(`${file} does not name a running service; start it first (npm start)`, { cause: error });
  }
}

/**
 * Returns nats://token@127.0.0.1:port of the nats-server that `npm start` runs for this folder.
 * @throws Error with one line when there is none
 */
export function localNatsUrl(dataDir: string): string {
  const { nats_port } = readAddresses(dataDir);
  if (nats_port === null)
    throw new Error(`the service in ${dataDir} uses an external NATS; set SERVICE_NATS_URL to it`);
  return `nats://${loadSecrets(dataDir).nats_token}@127.0.0.1:${nats_port}`;
}
