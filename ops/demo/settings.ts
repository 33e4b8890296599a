// Where a tool that runs beside the service finds the key of the local organisation.
import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { secretsFile } from '../secrets.ts';

/** A setting that is missing or wrong; message is one line for the user. */
export class SettingsError extends Error {}

/**
 * The API key that `npm start` made and keeps in its data folder.
 * @throws SettingsError when there is none.
 */
export function bootstrapKey(dataDir: string): string {
  const file = secretsFile(dataDir);
  try {
    return z.looseObject({ api_key: z.string() }).parse(JSON.parse(readFileSync(file, 'utf8'))).api_key;
  } catch (error) {
    throw new SettingsError(`No API key: ${file} holds none. Start the service here first (npm start), or name one by --key or SERVICE_BOOTSTRAP_API_KEY.`, { cause: error });
  }
}
