// The use that events on their way into the log will be metered as.
import { expect, test } from 'vitest';
import { usesOf } from '../../../api/admission/budget/uses.ts';
import { createPriceBook } from '../../../pipeline/domain/pricing/pricing.ts';
import { customTool } from '../formats/payloads.ts';

const entering = (body: string) => ({
  event: {
    org_id: 'org_a',
    format: 'custom' as const,
    event_hex: '0123456789abcdef',
    trace_id: 't',
    received_at: Date.now(),
    body,
  },
  partition: 2,
});
const amounts = { sandbox_seconds: 1.5, cost_usd: '0.25' };

test('an event uses what either place states; one that cannot be decoded uses nothing, and its neighbours their own', () => {
  const good = [customTool(amounts), customTool({ attributes: amounts })].map((event) =>
    entering(JSON.stringify(event)),
  );
  const bad = [JSON.stringify(customTool({ cost_usd: 'free' })), '{'].map(entering);
  const uses = usesOf(
    createPriceBook(() => []),
    [...bad, ...good],
  );
  expect(uses).toHaveLength(2);
  for (const use of uses)
    expect(use).toMatchObject({ partition: 2, sandbox_micros: 1_500_000, cost_pico_usd: 250_000_000_000n });
});
