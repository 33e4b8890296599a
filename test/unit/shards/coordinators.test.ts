// Reads by way of several servers: where they go, and when they may lack the rows of a shard.
import { ClickHouseError } from '@clickhouse/client';
import { describe, expect, it } from 'vitest';
import { Coordinators } from '../../../sql/client/coordinators.ts';
import { allowPartial } from '../../../sql/client/partial.ts';

const URLS = ['http://app:one@a:1/x', 'http://app:two@b:2/x', 'http://app:three@c:3/x'];

const refused = (): Error => Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' });
const away = (): Error => new ClickHouseError({ code: '279', message: 'All connection tries failed' });

/** Returns a read that records the settings of each try, and answers or throws as told in turn. */
function reading(answers: (() => string)[]) {
  const tries: unknown[] = [];
  return {
    tries,
    ask: (_client: unknown, settings: Record<string, unknown>): Promise<string> => {
      tries.push(settings['skip_unavailable_shards'] ?? 0);
      const answer = answers[tries.length - 1];
      return new Promise((resolve) => {
        resolve((answer ?? (() => 'late'))());
      });
    },
  };
}
const says = (text: string) => () => text;
const fails = (error: () => Error) => (): string => {
  throw error();
};

describe('Coordinators', () => {
  it('asks the next server where one cannot be reached, and stays with it for a while', async () => {
    const reads = new Coordinators(URLS, {});
    const clients: unknown[] = [];
    let down = true;
    const ask = (client: unknown): Promise<string> => {
      clients.push(client);
      return clients.length === 1 && down ? Promise.reject(refused()) : Promise.resolve('here');
    };
    expect(await reads.send(ask)).toBe('here');
    down = false;
    await reads.send(ask);
    expect(new Set(clients).size).toBe(2);
    expect(clients[2]).toBe(clients[1]);
    await reads.close();
  });

  it('fails when no server can be reached', async () => {
    const reads = new Coordinators(URLS, {});
    const { ask, tries } = reading(Array.from({ length: 9 }, () => fails(refused)));
    await expect(reads.send(ask)).rejects.toThrow('ECONNREFUSED');
    expect(tries).toHaveLength(URLS.length);
    await reads.close();
  });

  it('fails while a shard is away, for a caller that does not say what is missing', async () => {
    const reads = new Coordinators(URLS, {});
    const { ask, tries } = reading([fails(away), says('all')]);
    await expect(reads.send(ask)).rejects.toThrow('All connection tries failed');
    expect(await reads.send(ask)).toBe('all');
    expect(tries).toEqual([0, 0]);
    await reads.close();
  });

  it('leaves the shard out for a caller that does, and notes it', async () => {
    const reads = new Coordinators(URLS, {});
    const { ask, tries } = reading([fails(away), says('some'), says('some')]);
    const found = await allowPartial(async (isPartial) => [
      isPartial(),
      await reads.send(ask),
      isPartial(),
      await reads.send(ask),
    ]);
    expect(found).toEqual([false, 'some', true, 'some']);
    expect(tries).toEqual([0, 1, 1]);
    await reads.close();
  });

  it('notes nothing for a caller whose read has all rows', async () => {
    const reads = new Coordinators(URLS, {});
    const { ask } = reading([says('all')]);
    expect(await allowPartial(async (isPartial) => [await reads.send(ask), isPartial()])).toEqual(['all', false]);
    await reads.close();
  });

  it('passes other errors of the store on at once', async () => {
    const reads = new Coordinators(URLS, {});
    const { ask, tries } = reading([fails(() => new ClickHouseError({ code: '62', message: 'Syntax error' }))]);
    await expect(allowPartial(() => reads.send(ask))).rejects.toThrow('Syntax error');
    expect(tries).toHaveLength(1);
    await reads.close();
  });
});
