import { describe, expect, it } from 'vitest';
import { checkEvent, splitBody } from '../../../schemas/formats/formats.ts';
import { checkTimes } from '../../../schemas/formats/times.ts';
import { seededRandom, Vocabulary } from '../../bench/vocabulary.ts';
import { STREAMS } from '../../soak/sender.ts';

describe('bodies of the soak load', () => {
  const vocabulary = new Vocabulary(5000);

  it.each(STREAMS.map((stream, index) => [`${stream.format} ${index}`, stream] as const))(
    'bodies of %s are valid, and new with each number',
    (_, stream) => {
      const body = stream.make(vocabulary, seededRandom(1));
      const texts = [7, 8].map((number) => {
        body.stamp(number);
        return body.bytes.toString('utf8');
      });
      expect(texts[0]).not.toBe(texts[1]);
      const split = splitBody(stream.format as 'custom', JSON.parse(texts[0] ?? ''));
      if (!split.ok) throw new Error(split.message);
      expect(split.events).toHaveLength(stream.events);
      for (const event of split.events) {
        const checked = checkEvent(stream.format as 'custom', event);
        if (!checked.ok) throw new Error(`${checked.path}: ${checked.message}`);
        expect(checkTimes(checked.value, Date.now())).toMatchObject({ ok: true });
      }
    },
  );

  it('the bodies make up the whole load', () => {
    expect(STREAMS.reduce((sum, { share }) => sum + share, 0)).toBeCloseTo(1, 9);
  });
});
