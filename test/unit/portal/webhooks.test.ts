// The portal's view of webhooks: the events as the API's document describes them, and the code that
// verifies a signature, which runs here against a signature of the service's form.
import { createHmac } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { catalogOf } from '../../../api/portal/web/screens/webhooks/event_catalog.ts';
import { VERIFY_CODE } from '../../../api/portal/web/screens/webhooks/verify_snippets.ts';
import { EVENT_CATALOG } from '../../../schemas/events/catalog.ts';
import { contractDocument } from '../../support/portal_contract.ts';

const catalog = catalogOf((await contractDocument()) as unknown as Parameters<typeof catalogOf>[0]);

describe('the catalog of events', () => {
  it('has every event that an endpoint can subscribe to, with when it fires', () => {
    expect(catalog.map(({ name }) => name)).toEqual(Object.keys(EVENT_CATALOG));
    expect(catalog.map(({ fires }) => fires)).toEqual(Object.values(EVENT_CATALOG).map(({ fires }) => fires));
  });

  it('names the fields of a payload with their types in words', () => {
    const event = catalog.find(({ name }) => name === 'cost.anomaly');
    expect(event?.fields.map(({ name, type }) => `${name}: ${type}`)).toEqual([
      'event: "cost.anomaly"',
      'z: number',
      'expected_usd: number',
      'actual_usd: number',
      'attributed_to: object',
    ]);
    expect(catalog.flatMap(({ fields }) => fields).filter(({ type }) => type === '')).toEqual([]);
  });
});

type Verify = (body: Buffer, header: string, secret: string, now?: number) => boolean;

describe('the code that verifies a signature in Node.js', async () => {
  const source = VERIFY_CODE.find(({ id }) => id === 'node')?.text ?? '';
  const { isFromMillrace } = (await import(`data:text/javascript,${encodeURIComponent(source)}`)) as {
    isFromMillrace: Verify;
  };
  const now = Date.UTC(2026, 10, 1);
  const body = Buffer.from('{"event":"trace.completed","text":"ü"}');
  const sign = (secret: string, t: number): string =>
    createHmac('sha256', secret).update(`${t}.`).update(body).digest('hex');
  const header = (secrets: readonly string[], t = now / 1000): string =>
    [`t=${t}`, ...secrets.map((secret) => `v1=${sign(secret, t)}`)].join(',');

  it('accepts a signature by any live secret', () => {
    expect(isFromMillrace(body, header(['whsec_a']), 'whsec_a', now)).toBe(true);
    expect(isFromMillrace(body, header(['whsec_b', 'whsec_a']), 'whsec_a', now)).toBe(true);
  });

  it('rejects another secret, another body, an old time and a text that is no signature', () => {
    expect(isFromMillrace(body, header(['whsec_b']), 'whsec_a', now)).toBe(false);
    expect(isFromMillrace(Buffer.from('{}'), header(['whsec_a']), 'whsec_a', now)).toBe(false);
    expect(isFromMillrace(body, header(['whsec_a'], now / 1000 - 301), 'whsec_a', now)).toBe(false);
    expect(isFromMillrace(body, '', 'whsec_a', now)).toBe(false);
    expect(isFromMillrace(body, `t=${now / 1000},v1=`, 'whsec_a', now)).toBe(false);
  });
});
