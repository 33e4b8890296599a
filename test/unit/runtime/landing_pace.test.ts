import { describe, expect, it } from 'vitest';
import { LIMITS } from '../../../pipeline/limits.ts';
import { landingDelay } from '../../../pipeline/landing/landing_pace.ts';

const pace = { since_ms: 0, took_ms: 10, buffered_bytes: 0 };

describe('landingDelay', () => {
  it('is the shortest interval while landings are quick', () => {
    expect(landingDelay(pace)).toBe(LIMITS.landing_interval_ms);
    expect(landingDelay({ ...pace, took_ms: 50 })).toBe(LIMITS.landing_interval_ms);
    expect(landingDelay({ ...pace, since_ms: 40 })).toBe(LIMITS.landing_interval_ms - 40);
    expect(landingDelay({ ...pace, since_ms: 5000 })).toBe(0);
  });
  it('grows with the duration of landings, up to its maximum', () => {
    expect(landingDelay({ ...pace, took_ms: 90 })).toBe(180);
    expect(landingDelay({ ...pace, took_ms: 2000 })).toBe(LIMITS.landing_interval_ms_max);
    expect(landingDelay({ ...pace, took_ms: 2000, since_ms: 2000 })).toBe(0);
  });
  it('is the shortest interval once a whole batch waits', () => {
    const full = { ...pace, took_ms: 2000, buffered_bytes: LIMITS.batch_bytes_max };
    expect(landingDelay(full)).toBe(LIMITS.landing_interval_ms);
    expect(landingDelay({ ...full, since_ms: LIMITS.landing_interval_ms })).toBe(0);
  });
});
