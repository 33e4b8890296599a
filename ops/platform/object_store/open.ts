// Opens the store of objects that a setting names.
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { FileStore } from './file_store.ts';
import type { ObjectStore } from './object_store.ts';

export interface ObjectStoreSettings {
  /** file:///dir or s3://bucket/prefix?endpoint=…&region=… */
  url: string;
  /** For s3; left out: what the SDK finds around it (a role of the machine). */
  credentials?: { accessKeyId: string; secretAccessKey: string } | undefined;
}

/** Nothing is asked of the store yet. @throws Error when the URL is none of a store; ops/platform/env.ts refuses such */
export async function openObjectStore({ url, credentials }: ObjectStoreSettings): Promise<ObjectStore> {
  const parsed = new URL(url);
  if (parsed.protocol === 'file:') return new FileStore(path.resolve(fileURLToPath(parsed)));
  // The SDK takes tens of megabytes: only who has a bucket loads it.
  const { S3Store } = await import('./s3_store.ts');
  return new S3Store({
    bucket: parsed.hostname,
    prefix: decodeURIComponent(parsed.pathname).replace(/^\/+|(?<!\/)\/+$/g, ''),
    endpoint: parsed.searchParams.get('endpoint') ?? undefined,
    region: parsed.searchParams.get('region') ?? 'us-east-1',
    credentials,
  });
}
