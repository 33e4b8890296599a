// SERVICE_CLICKHOUSE_SHARDS: which texts name shards, and what is said about others.
import { describe, expect, it } from 'vitest';
import { firstRecord, movedRecord, parseShards, shardsOfPartitions, shardsRecord } from '../../../schemas/shards.ts';
import { parseEnv } from '../../../ops/platform/env.ts';

const A = 'a:0-3=http://app:secret@ch-a:8123/millrace';
const B = 'b:4-7=https://app:secret@ch-b:8443/millrace,http://app:secret@ch-c:8123/millrace';

describe('parseShards', () => {
  it('returns names, ranges and addresses in order', () => {
    expect(parseShards(` ${A}\n${B} `)).toEqual([
      { name: 'a', range: { from: 0, to: 3 }, urls: ['http://app:secret@ch-a:8123/millrace'] },
      {
        name: 'b',
        range: { from: 4, to: 7 },
        urls: ['https://app:secret@ch-b:8443/millrace', 'http://app:secret@ch-c:8123/millrace'],
      },
    ]);
  });

  it.each([
    ['a', 'must consist of entries name:first-last=http://user:password@host:port/database; got "a"'],
    ['a:0-1=', 'got "a:0-1=…"'],
    ['A:0-1=http://h', 'must consist of entries'],
    ['a:0-1=ftp://app:secret@h/millrace', 'has a URL of the shard a that does not begin with http:// or https://'],
    [
      'a:1-2=http://h',
      'gives the shard a the partitions 1 to 2; each range begins where the one before ends, the first at 0',
    ],
    ['a:0-1=http://h b:3-4=http://i', 'gives the shard b the partitions 3 to 4'],
    ['a:0-1=http://h b:1-2=http://i', 'gives the shard b the partitions 1 to 2'],
    ['a:1-0=http://h', 'gives the shard a the partitions 1 to 0'],
    ['a:0-1=http://h a:2-3=http://i', 'names the shard a twice'],
    [
      Array.from({ length: 65 }, (_, at) => `s${at}:${at}-${at}=http://h`).join(' '),
      'has 65 shards; at most 64 are possible',
    ],
  ])('rejects %j', (text, problem) => {
    expect(() => parseShards(text)).toThrow(problem);
  });

  it.each([
    [4, 'takes the partitions 0 to 7; the ingest log has 0 to 3'],
    [16, 'takes the partitions 0 to 7; the ingest log has 0 to 15'],
  ])('a log of %i partitions needs other ranges', (partitions, problem) => {
    expect(() => {
      shardsOfPartitions(parseShards(`${A} ${B}`), partitions);
    }).toThrow(problem);
  });
});

describe('the record of shards', () => {
  const two = parseShards('a:0-1=http://h b:2-3=http://i');

  it('has every shard and partition at first', () => {
    expect(firstRecord(parseShards('a:0-0=http://h b:1-1=http://i c=http://j'), 2)).toEqual({
      names: ['a', 'b', 'c'],
      places: [
        { now: 'a', before: [] },
        { now: 'b', before: [] },
      ],
    });
  });

  it('has ranges as long as every shard has one, as in versions that cannot move partitions', () => {
    expect(firstRecord(two, 4)).toEqual([
      { name: 'a', from: 0, to: 1 },
      { name: 'b', from: 2, to: 3 },
    ]);
  });

  it('stays what it is where no partition moves, in whatever order the setting names the shards', () => {
    const record = shardsRecord.parse(firstRecord(two, 4));
    expect(movedRecord(record, two)).toBe(record);
  });

  it('gets a shard at its end, and remembers where partitions were', () => {
    const once = movedRecord(
      shardsRecord.parse(firstRecord(two, 4)),
      parseShards('a:0-0=http://h c:1-1=http://j b:2-3=http://i'),
    );
    expect(once.names).toEqual(['a', 'b', 'c']);
    expect(once.places[1]).toEqual({ now: 'c', before: ['a'] });
    expect(once.places[0]).toEqual({ now: 'a', before: [] });
    const back = movedRecord(once, parseShards('a:0-1=http://h b:2-3=http://i c=http://j'));
    expect(back.places[1]).toEqual({ now: 'a', before: ['c'] });
  });
});

describe('the setting', () => {
  it('is read into shards', () => {
    expect(parseEnv({ SERVICE_CLICKHOUSE_SHARDS: A }).SERVICE_CLICKHOUSE_SHARDS).toEqual(parseShards(A));
  });

  it('shows no password where it is wrong', () => {
    const read = () => parseEnv({ SERVICE_CLICKHOUSE_SHARDS: 'a:0-1=ftp://app:secret@h/millrace' });
    expect(read).toThrow('SERVICE_CLICKHOUSE_SHARDS: got a value of 33 characters; has a URL of the shard a');
    expect(read).not.toThrow('secret');
  });

  it('replaces SERVICE_CLICKHOUSE_URL', () => {
    expect(() => parseEnv({ SERVICE_CLICKHOUSE_SHARDS: A, SERVICE_CLICKHOUSE_URL: 'http://h' })).toThrow(
      'SERVICE_CLICKHOUSE_URL: got a value beside SERVICE_CLICKHOUSE_SHARDS, which names all servers',
    );
  });
});
