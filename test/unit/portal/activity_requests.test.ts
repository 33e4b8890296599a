// How the rows of a list of sessions or users share requests for their sparklines.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { activityRequests } from '../../../api/portal/web/screens/sessions/activity_requests.ts';

describe('activityRequests', () => {
  it('asks for 50 rows in one request', () => {
    const ids = Array.from({ length: 50 }, (_, at) => `session-${at}`);
    expect(activityRequests(ids)).toEqual([ids]);
  });

  it('asks for every accepted id once, in order, with 50 ids and 6,000 bytes of address at most', () => {
    const id = fc.oneof(fc.string({ maxLength: 60, unit: 'binary' }), fc.constantFrom(',', '\\', 'ä'.repeat(900)));
    fc.assert(
      fc.property(
        fc.uniqueArray(
          id.filter((one) => one !== ''),
          { maxLength: 130 },
        ),
        (ids) => {
          const requests = activityRequests(ids);
          expect(requests.flat()).toEqual(ids);
          for (const part of requests) {
            expect(part.length).toBeLessThanOrEqual(50);
            if (part.length > 1) expect(encodeURIComponent(part.join(',')).length).toBeLessThanOrEqual(6000);
          }
        },
      ),
    );
  });

  it('leaves out ids that the API refuses: without a character, or with more than 1,024', () => {
    expect(activityRequests(['', 'a'.repeat(1025), 'b'])).toEqual([['b']]);
  });
});
