// Own patterns of a policy: which are accepted, how many steps they may take in place, and what
// happens to a text that exceeds them.
import { afterAll, describe, expect, it } from 'vitest';
import { PatternRunner } from '../../../ops/platform/pattern_runner.ts';
import { ownBounds } from '../../../pipeline/domain/patterns/bounds.ts';
import {
  checkOwnPatterns,
  customFinder,
  OWN_SIZE_MAX,
  OWN_SIZES_MAX,
  UnusablePattern,
} from '../../../pipeline/domain/pii/custom.ts';
import { beginningOf } from '../../../pipeline/domain/pii/prefix.ts';
import { PiiRedactor } from '../../../pipeline/domain/pii/pii.ts';
import { EVENT_STEPS_MAX, OwnPatterns } from '../../../pipeline/domain/pii/own_patterns.ts';
import { noiseOfTwo } from '../../support/noise.ts';

/** 805 instructions, which took seconds on 60 kB. */
const SLOW = '[a-z]{1,400}\\d|z1';
const SLOW_TEXT = 'abcdefghij'.repeat(6000);
const own = (...patterns: string[]) => patterns.map((pattern, index) => ({ label: `L${index}`, pattern }));
const redactorOf = (patterns: string[], runner?: PatternRunner) =>
  new PiiRedactor({
    kinds: ['email'],
    custom: own(...patterns),
    hash_key: null,
    bounds: runner === undefined ? undefined : ownBounds(runner, 'org_a'),
  });

const runner = new PatternRunner();
afterAll(() => runner.close());

describe('a policy', () => {
  it('a policy is rejected with the size of a pattern that is too large, and with what would pass', () => {
    expect(() => {
      checkOwnPatterns(['a', SLOW]);
    }).toThrow(
      /^the pattern has 805 instructions once its repetitions are written out; it must have at most 500\. Use smaller counts in \{\}/,
    );
    const half = `(?:ab){${Math.floor(OWN_SIZE_MAX / 2) - 10}}`;
    const error = (() => {
      try {
        checkOwnPatterns([half, half, half, half, half]);
        return null;
      } catch (cause) {
        return cause;
      }
    })();
    expect(error).toBeInstanceOf(UnusablePattern);
    expect(error).toMatchObject({
      index: 4,
      message: expect.stringContaining(`it must have at most ${OWN_SIZES_MAX} in all patterns`) as string,
    });
  });

  it('a policy may have twenty usual patterns', () => {
    checkOwnPatterns(Array.from({ length: 20 }, (_, index) => `\\b[A-Z]{2}\\d{2}[A-Z0-9]{11,${index + 11}}\\b`));
  });

  it('a stored policy with patterns that are invalid by now replaces what they may match, and fails nothing', () => {
    const redaction = redactorOf(['(unbalanced', 'EMP-\\d{6}']).begin();
    expect(redaction.text('EMP-123456')).toBe('[REDACTED]');
    expect(redaction.takeKinds()).toEqual(['unsearched']);
    expect(new OwnPatterns(own('(unbalanced', 'x')).unusable).toEqual(['L0']);
  });
});

describe('the steps of own patterns in place', () => {
  it('steps of own patterns are paid before they are taken: a text that exceeds them is replaced as a whole, and nothing runs', () => {
    const paid: number[] = [];
    const found = new OwnPatterns(own(SLOW)).find(SLOW_TEXT, (steps) => {
      paid.push(steps);
      return false;
    });
    expect(found).toBe('exceeded');
    expect(paid).toHaveLength(1);
    expect(paid[0]).toBeGreaterThan(EVENT_STEPS_MAX);
    const redaction = redactorOf([SLOW]).begin();
    expect(redaction.text(SLOW_TEXT)).toBe('[REDACTED]');
    expect(redaction.text('call az1 or ann@example.com')).toBe('call [L0] or [EMAIL]');
    expect(redaction.exceeded).toEqual([SLOW_TEXT]);
  });

  it('steps of all texts and names of an event together stay within its bound, however many there are', () => {
    const redaction = redactorOf([SLOW]).begin();
    const event = Object.fromEntries(
      Array.from({ length: 5000 }, (_, index) => [`name${'q'.repeat(index % 40)}${index}`, `text ${index}`]),
    );
    const shown = redaction.fields(event);
    expect(Object.keys(shown)).toHaveLength(5000);
    expect(redaction.exceeded.length).toBeGreaterThan(4000);
  });

  it.each(['x[^y]*y|x', '.*Q|a', '(?:a|aa)+', 'a'])(
    'steps grow no faster than the text, whatever matches: %s',
    (pattern) => {
      const finder = customFinder(pattern);
      const stepsOf = (chars: number): number => {
        let sum = 0;
        finder.find(
          'xa'.repeat(chars / 2),
          () => undefined,
          (steps) => {
            sum += steps;
            return true;
          },
        );
        return sum;
      };
      expect(stepsOf(20_000)).toBeLessThan(2.5 * stepsOf(10_000));
    },
  );

  it('a text that the beginning of a pattern rules out takes no steps, and few characters are read at each position', () => {
    expect(new OwnPatterns(own('EMP-\\d{6}')).find(SLOW_TEXT, () => false)).toEqual([]);
    // A beginning of 32 pieces of 64 characters each was compared in 64 ways at every position: 100
    // µs a character.
    for (const pattern of [
      `${'[ab]{64}'.repeat(31)}c`,
      `(?i)[ab]{0,60}${'[ab]{64}'.repeat(30)}c`,
      `${'[ab]?'.repeat(31)}cc`,
    ])
      expect(beginningOf(pattern)?.test('ab'.repeat(500_000)) ?? true).toBe(true);
    expect(beginningOf(`${'[ab]{64}'.repeat(31)}c`)?.length).toBe(64);
  });
});

describe('a text that is too much in place', () => {
  it('a text that exceeds the steps is searched in a thread, and redacted like any other when that ends in time', async () => {
    const text = `${'nothing to be found here '.repeat(40_000)}EMP-123456 of bob@example.com`;
    const redactor = redactorOf(['[A-Z]+-\\d{6}|zz\\d'], runner);
    expect(redactor.begin().text(text)).toBe('[REDACTED]');
    const shown = await redactor.redact((redaction) => redaction.text(text));
    expect(shown.endsWith('to be found here [L0] of [EMAIL]')).toBe(true);
    expect(shown).toHaveLength(text.length - 'EMP-123456'.length + 4 - 'bob@example.com'.length + 7);
  }, 60_000);

  it('a text is replaced as a whole when the thread does not end in time, while this thread continues', async () => {
    let turns = 0;
    const count = setInterval(() => (turns += 1), 5);
    const redactor = redactorOf(['a[ab]{900}[cd]'], runner);
    const text = noiseOfTwo(2_000_000);
    const shown = await redactor.redact((redaction) => ({
      text: redaction.text(text),
      small: redaction.text('ann@example.com'),
    }));
    clearInterval(count);
    expect(shown).toEqual({ text: '[REDACTED]', small: '[EMAIL]' });
    expect(turns).toBeGreaterThan(3);
  }, 60_000);

  it('a text is replaced at once for an organization that used up its share of time; other organizations continue', async () => {
    const busy = new PatternRunner();
    busy.took('org_a', 60_000);
    const of = (org_id: string) =>
      new PiiRedactor({
        kinds: [],
        custom: own('[A-Z]+-\\d{6}|zz\\d'),
        hash_key: null,
        bounds: ownBounds(busy, org_id),
      });
    expect(await of('org_a').redact((redaction) => redaction.text('EMP-123456'))).toBe('[REDACTED]');
    expect(await of('org_b').redact((redaction) => redaction.text('EMP-123456'))).toBe('[L0]');
    await busy.close();
  });
});
