// The use that events on their way into the log will be metered as.
import { expect, test } from 'vitest';
import { usesOf } from '../../../api/admission/budget/uses.ts';
import { readCall } from '../../../api/intake/gateway/call.ts';
import { labelsOf } from '../../../api/intake/gateway/labels.ts';
import { recordOf } from '../../../api/intake/gateway/record.ts';
import { Estimates } from '../../../api/intake/gateway/reserve.ts';
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

const CHAT = { choices: [], usage: { prompt_tokens: 900, completion_tokens: 4096 } };
const MESSAGES = { content: [], usage: { input_tokens: 900, output_tokens: 4096 } };

test.each([
  ['chat', 'gpt-4o-mini', CHAT],
  ['messages', 'claude-sonnet-4-5', MESSAGES],
  ['chat', 'a-model-without-a-price', CHAT],
] as const)(
  'a call of %s to %s reserves what its record will use if the estimate is right',
  (operation, model, response) => {
    const prices = createPriceBook(() => []);
    const at = Date.UTC(2026, 5, 1, 10, 30);
    const headers = { 'x-service-agent-id': 'agent_a', 'x-service-trace-id': 'trc_1' };
    const call = readCall(operation, labelsOf(headers), Buffer.from(JSON.stringify({ model, messages: [] })));
    const estimated = { ...new Estimates().of('org_a', call, at, 4).call, input_tokens: 900 };
    const record = recordOf(
      {
        org_id: 'org_a',
        operation,
        labels: call.labels,
        request: call.request,
        response,
        outcome: 'success',
        started_at: at,
        ended_at: at,
        attributes: {},
      },
      4,
    );
    const [reserved, used] = usesOf(prices, [estimated, record]);
    expect(reserved).toMatchObject({ agent_id: 'agent_a', tokens: 4996, hour: Date.UTC(2026, 5, 1, 10) });
    expect({ ...reserved, storage_bytes: 0 }).toEqual({ ...used, storage_bytes: 0 });
    if (model !== 'a-model-without-a-price') expect(reserved?.cost_pico_usd).toBeGreaterThan(0n);
  },
);
