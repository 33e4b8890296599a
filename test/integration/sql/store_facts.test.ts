// The ClickHouse metrics that the leader exposes, on the real engine.
import { expect, it } from 'vitest';
import { readStoreFacts } from '../../../pipeline/wiring/store_gauges.ts';
import { openTestStore } from '../../support/store.ts';
import { aSpan } from '../../support/spans.ts';

it('reads the number of parts of the fullest partition and the free space on the disk', async () => {
  const store = await openTestStore();
  try {
    for (let part = 0; part < 3; part += 1) await store.landSpans([aSpan()]);
    const { parts_max, free_bytes, total_bytes } = await readStoreFacts([store.client]);
    expect(parts_max).toBeGreaterThan(0);
    expect(free_bytes).toBeGreaterThan(0);
    expect(total_bytes).toBeGreaterThan(free_bytes);
  } finally {
    await store.close();
  }
});
