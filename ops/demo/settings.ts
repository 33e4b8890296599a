// Where a tool that runs beside the service finds it: the address and the key that `npm start` left in its data folder.
import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { readAddresses, secretsFile } from '../launch/secrets.ts';

/** A setting that is missing or wrong; message is one line for the user. */
export class SettingsError extends Error {}

/**
 * The API key that `npm start` made and keeps in its data folder.
 * @throws SettingsError when there is none.
 */
export function localKey(dataDir: string): string {
  const file = secretsFile(dataDir);
  try {
    return z.looseObject({ api_key: z.string() }).parse(JSON.parse(readFileSync(file, 'utf8'))).api_key;
  } catch (error) {
    throw new SettingsError(
      `No API key: ${file} holds none. Start the service here first (npm start), or name one by --key or SERVICE_BOOTSTRAP_API_KEY.`,
      { cause: error },
    );
  }
}

/** The address of the service that was started with a data folder, or null where none was. */
export function localUrl(dataDir: string): string | null {
  try {
    return readAddresses(dataDir).base_url;
  } catch {
    return null;
  }
}
