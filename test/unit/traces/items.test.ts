import { describe, expect, it } from 'vitest';
import { readAttributes } from '../../../pipeline/domain/text/attributes.ts';
import { rowChunks } from '../../../api/telemetry/traces/export.ts';
import type { SpanRow } from '../../../api/telemetry/traces/store.ts';

describe('attributes', () => {
  it('attributes include the kind, whatever was sent under its name', () => {
    expect(readAttributes('{"span_kind":"mine","a":1}', 'tool')).toEqual({ a: 1, span_kind: 'tool' });
    expect(readAttributes('{}', 'llm')).toEqual({ span_kind: 'llm' });
  });

  it('attributes are written again digit by digit', () => {
    const text =
      '{"a":12345678901234567890,"b":[-9007199254740993],"c":9007199254740991,"d":1.5,"e":"12345678901234567890","f":1e400}';
    expect(JSON.stringify(readAttributes(text, 'llm'))).toBe(
      '{"a":12345678901234567890,"b":[-9007199254740993],"c":9007199254740991,"d":1.5,"e":"12345678901234567890","f":null,"span_kind":"llm"}',
    );
  });

  it.each(['', 'nonsense', '[1]', 'null', '7'])('attributes that are not an object are shown as none: %s', (text) => {
    expect(readAttributes(text, 'llm')).toEqual({ span_kind: 'llm' });
  });
});

describe('chunks of an export', () => {
  const row = (storage_bytes: number): SpanRow => ({ storage_bytes }) as SpanRow;
  const sizes = async (blocks: number[][]): Promise<number[]> => {
    async function* feed(): AsyncGenerator<SpanRow[]> {
      for (const block of blocks) yield await Promise.resolve(block.map(row));
    }
    const found: number[] = [];
    for await (const chunk of rowChunks(feed())) found.push(chunk.length);
    return found;
  };

  it('chunks of an export are bounded in spans', async () => {
    expect(await sizes([Array.from({ length: 700 }, () => 10), Array.from({ length: 400 }, () => 10)])).toEqual([
      500, 500, 100,
    ]);
  });

  it('chunks of an export are bounded in bytes', async () => {
    const megabyte = 1024 * 1024;
    expect(
      await sizes([
        [5 * megabyte, 5 * megabyte, megabyte],
        [7 * megabyte, 1],
      ]),
    ).toEqual([2, 2, 1]);
  });

  it('an export without rows has no chunk', async () => {
    expect(await sizes([[]])).toEqual([]);
  });
});
