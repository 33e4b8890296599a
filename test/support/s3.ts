// An S3-compatible server for tests: s3rver, on a free port with its own folder.
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import { removeDir, tempDir } from './temp.ts';

/** The part of s3rver that is used here; the package has no types. */
interface S3rverInstance {
  run: () => Promise<AddressInfo>;
  close: () => Promise<void>;
}
type S3rverClass = new (options: {
  address: string;
  port: number;
  silent: boolean;
  directory: string;
  configureBuckets: { name: string; configs: string[] }[];
}) => S3rverInstance;

/** Credentials that the server accepts. */
export const S3_CREDENTIALS = { accessKeyId: 'S3RVER', secretAccessKey: 'S3RVER' };

export interface TestS3 {
  /** Address of an object store in the existing bucket `cold`. */
  url: string;
  /** Address of an object store in a bucket that does not exist. */
  noBucketUrl: string;
  close: () => Promise<void>;
}

export async function startTestS3(): Promise<TestS3> {
  const S3rver = createRequire(import.meta.url)('s3rver') as S3rverClass;
  const directory = tempDir('s3');
  const server = new S3rver({
    address: '127.0.0.1',
    port: 0,
    silent: true,
    directory,
    configureBuckets: [{ name: 'cold', configs: [] }],
  });
  const { port } = await server.run();
  const urlOf = (bucket: string): string =>
    `s3://${bucket}/some/prefix?endpoint=http://127.0.0.1:${port}&region=eu-central-1`;
  return {
    url: urlOf('cold'),
    noBucketUrl: urlOf('none'),
    close: async () => {
      await server.close();
      removeDir(directory);
    },
  };
}
