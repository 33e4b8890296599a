// Address and key of a local service, which `npm start` leaves in its data folder for tools.
import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { readAddresses, secretsFile } from '../launch/secrets.ts';

/** A setting is missing or wrong; the message is one line for the user. */
export class SettingsError extends Error {}

/**
 * Returns the API key that `npm start` created in its data folder.
 * @throws SettingsError when there is none
 */
export function localKey(dataDir: string): string {
  const file = secretsFile(dataDir);
  try {
    return z.looseObject({ api_key: z.string() }).parse(JSON.parse(readFileSync(file, 'utf8'))).api_key;
  } catch (error) {
    throw new SettingsError(
      `No API key: ${file} holds none. Start the service here first (npm start), or pass one with --key or SERVICE_BOOTSTRAP_API_KEY.`,
      { cause: error },
    );
  }
}

/**
 * Returns the address of the service that was started with a data folder; null if there was none.
 */
export function localUrl(dataDir: string): string | null {
  try {
    return readAddresses(dataDir).base_url;
  } catch {
    return null;
  }
}
