// An empty KV bucket without a server, for tests of decisions that precede any request to a server.
// It records its calls.
import type { KV } from '@nats-io/kv';
import type { NatsConnection } from '@nats-io/transport-node';

export interface EmptyBucket {
  nc: NatsConnection;
  kv: KV;
  /** Every call that names a key: the method and the key. */
  asked: [method: string, key: string][];
}

const nothingEver = { [Symbol.asyncIterator]: () => ({ next: () => new Promise<never>(() => undefined) }) };

export function anEmptyBucket(): EmptyBucket {
  const asked: EmptyBucket['asked'] = [];
  const asking =
    <T>(method: string, answer: T) =>
    (key: string): Promise<T> => {
      asked.push([method, key]);
      return Promise.resolve(answer);
    };
  const kv = {
    status: () => Promise.resolve({ values: 0 }),
    watch: () => Promise.resolve({ ...nothingEver, stop: () => undefined }),
    get: asking('get', null),
    create: asking('create', 1),
    update: asking('update', 2),
    put: asking('put', 1),
    delete: asking('delete', undefined),
  };
  return { nc: { status: () => nothingEver } as unknown as NatsConnection, kv: kv as unknown as KV, asked };
}
