// Opens the object store that a setting names.
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { FileStore } from './file_store.ts';
import type { ObjectStore } from './object_store.ts';

export interface ObjectStoreSettings {
  /** file:///dir or s3://bucket/prefix?endpoint=…&region=… */
  url: string;
  /** Credentials for s3. Unset: the SDK uses what it finds on the machine, such as a role. */
  credentials?: { accessKeyId: string; secretAccessKey: string } | undefined;
}

/**
 * Opens a store without a request to it. @throws Error for a URL that names no store;
 * ops/platform/env.ts refuses such URLs
 */
export async function openObjectStore({ url, credentials }: ObjectStoreSettings): Promise<ObjectStore> {
  const parsed = new URL(url);
  if (parsed.protocol === 'file:') return new FileStore(path.resolve(fileURLToPath(parsed)));
  // The SDK takes tens of megabytes, so only a process with a bucket loads it.
  const { S3Store } = await import('./s3_store.ts');
  return new S3Store({
    bucket: parsed.hostname,
    prefix: decodeURIComponent(parsed.pathname).replace(/^\/+|(?<!\/)\/+$/g, ''),
    endpoint: parsed.searchParams.get('endpoint') ?? undefined,
    region: parsed.searchParams.get('region') ?? 'us-east-1',
    credentials,
  });
}
