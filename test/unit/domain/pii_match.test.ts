// The platform event pii.match: which redactions are reported.
import { expect, it } from 'vitest';
import { isReported, piiMatches } from '../../../pipeline/domain/pii/match_sample.ts';
import { aSpan } from '../../support/spans.ts';

const spans = Array.from({ length: 20_000 }, (_, index) =>
  aSpan({ span_id: `spn_${index}`, event_hex: index.toString(16).padStart(16, '0'), redacted: ['email'] }),
);

it('pii.match is published for one redaction in a thousand, and for the same ones every time', () => {
  const told = piiMatches(spans);
  expect(told.length).toBeGreaterThan(5);
  expect(told.length).toBeLessThan(45);
  expect(piiMatches(spans)).toEqual(told);
  const { org_id, trace_id, payload } = told[0] ?? {};
  expect(payload).toEqual({ event: 'pii.match', org_id, trace_id, span_id: payload?.span_id, kinds: ['email'] });
  expect(new Set(told.map(({ subject }) => subject)).size).toBe(told.length);
});

it('pii.match is not published for spans without redactions', () => {
  expect(piiMatches(spans.map((span) => ({ ...span, redacted: [] })))).toEqual([]);
  expect(spans.some(({ event_hex, span_id }) => isReported(event_hex, span_id))).toBe(true);
});
