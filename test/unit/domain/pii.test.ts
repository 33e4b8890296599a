import { describe, expect, it } from 'vitest';
import { anonymize } from '../../../pipeline/domain/pii.ts';

describe('anonymize', () => {
  it.each([
    ['write to jo.doe+x@mail.example.co.uk.', 'write to [EMAIL].'],
    ['<müller@exämple.de>', '<[EMAIL]>'],
    ['card 4111 1111 1111 1111, or 5500-0000-0000-0004', 'card [CARD], or [CARD]'],
    ['amex 378282246310005', 'amex [CARD]'],
    ['order 4111111111111112 and 0000000000000000', 'order 4111111111111112 and 0000000000000000'],
    ['ssn 123-45-6789, not 000-45-6789 nor 123-00-6789', 'ssn [SSN], not 000-45-6789 nor 123-00-6789'],
    ['from 192.168.0.1:8080 and 999.1.1.1', 'from [IP]:8080 and 999.1.1.1'],
    ['at 2001:db8::ff00:42:8329 and fe80::1', 'at [IP] and [IP]'],
    ['at 12:30:45 and ratio 3:2', 'at 12:30:45 and ratio 3:2'],
    ['call +1 (415) 555-2671 or 415-555-2671 or (415) 555 2671', 'call [PHONE] or [PHONE] or [PHONE]'],
    ['ruf +49 30 901820 oder 030 90182000 an', 'ruf [PHONE] oder [PHONE] an'],
    ['on 2026-11-21 09:50:00 and 2026-11-21T09:50:00Z', 'on 2026-11-21 09:50:00 and 2026-11-21T09:50:00Z'],
    ['ids 1234567890, v1.22.333 and 1000 2000 3000 tokens', 'ids 1234567890, v1.22.333 and 1000 2000 3000 tokens'],
    ['', ''],
  ])('%s', (text, expected) => {
    expect(anonymize(text)).toBe(expected);
  });

  it.each(['a', '1', '1 ', 'a.', '-1', '+1', '(1) ', '1.', 'f:', ':', '@', 'a@', 'a@a.', '0 '])(
    'takes time in proportion to the text, be it nothing but "%s"',
    (piece) => {
      const time = (length: number): number => {
        const text = piece.repeat(length / piece.length);
        const began = performance.now();
        anonymize(text);
        return performance.now() - began;
      };
      time(20_000);
      expect(time(400_000)).toBeLessThan(Math.max(400, 200 * time(20_000)));
    },
  );
});
