import { describe, expect, it } from 'vitest';
import { readTexts } from '../../../api/http/text_reads.ts';

interface Wanted {
  key: string;
}
interface Row extends Wanted {
  prompt: string;
  response: string;
}

/** Streams rows one after the other, those of missing texts excepted, and notes what it was asked. */
function aStore(missing: readonly string[] = []) {
  const asked: string[][] = [];
  async function* stream(wanted: readonly Wanted[]): AsyncGenerator<Row[]> {
    asked.push(wanted.map(({ key }) => key));
    for (const { key } of wanted) {
      if (missing.includes(key)) continue;
      await Promise.resolve();
      yield [{ key, prompt: 'é', response: 'x'.repeat(8) }];
    }
  }
  return { asked, stream };
}

const texts = ['a', 'b', 'c', 'd', 'e'].map((key) => ({ key }));
const keyOf = ({ key }: Wanted): string => key;
const { signal } = new AbortController();

describe('readTexts', () => {
  it('reads all texts with one statement within its bytes', async () => {
    const { asked, stream } = aStore();
    const taken: string[] = [];
    const take = ({ key }: Row): void => void taken.push(key);
    expect(await readTexts(texts, { stream, keyOf, take, signal, bytesMax: 51 })).toEqual([]);
    expect([asked.length, taken]).toEqual([1, ['a', 'b', 'c', 'd', 'e']]);
    expect(await readTexts([], { stream, keyOf, take, signal })).toEqual([]);
    expect(asked).toHaveLength(1);
  });

  it('ends a statement after its bytes, in UTF-8, and asks another for the rest', async () => {
    const { asked, stream } = aStore();
    const taken: string[] = [];
    const take = ({ key }: Row): void => void taken.push(key);
    expect(await readTexts(texts, { stream, keyOf, take, signal, bytesMax: 20 })).toEqual([]);
    expect(asked).toEqual([['a', 'b', 'c', 'd', 'e'], ['c', 'd', 'e'], ['e']]);
    expect(taken).toEqual(['a', 'b', 'c', 'd', 'e']);
  });

  it('returns the texts that are not wanted any more, but no text that is missing', async () => {
    const { asked, stream } = aStore(['b']);
    const isWanted = ({ key }: Wanted): boolean => key !== 'd';
    const left = await readTexts(texts, { stream, keyOf, take: () => undefined, isWanted, signal, bytesMax: 1 });
    expect(left).toEqual([{ key: 'd' }]);
    expect(asked).toEqual([['a', 'b', 'c', 'd', 'e'], ['b', 'c', 'e'], ['b', 'e'], ['b']]);
  });

  it('rejects once its signal is aborted', async () => {
    const { stream } = aStore();
    const controller = new AbortController();
    const take = (): void => {
      const until = performance.now() + 12;
      while (performance.now() < until);
      controller.abort(new Error('gone'));
    };
    const reads = { stream, keyOf, take, signal: controller.signal };
    await expect(readTexts(texts, reads)).rejects.toThrow('gone');
  });
});
