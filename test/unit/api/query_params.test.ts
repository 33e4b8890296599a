// The rejection of a query parameter, and the schemas that declare lists.
import { expect, test } from 'vitest';
import { z } from 'zod';
import { checkQueryNames, familiesFolded, unknownParameter } from '../../../api/http/query_params.ts';
import { listParam } from '../../../api/http/route.ts';

const names = [
  'limit',
  'offset',
  'cursor',
  'agent_id',
  'outcome',
  'min_duration_ms',
  'max_duration_ms',
  'since',
  'until',
  'tags',
];

test.each([
  ['agentid', 'agent_id'],
  ['agentId', 'agent_id'],
  ['agent-id', 'agent_id'],
  ['AGENT_ID', 'agent_id'],
  ['agent', 'agent_id'],
  ['tags[]', 'tags'],
  ['tag', 'tags'],
  ['limt', 'limit'],
  ['max_duration', 'max_duration_ms'],
  ['untill', 'until'],
  ['outcomes', 'outcome'],
])('the nearest parameter to %s is %s', (given, nearest) => {
  expect(unknownParameter(given, names)).toBe(`unknown query parameter ${given}; did you mean ${nearest}?`);
});

test('a name unlike any parameter is answered with all parameters of the endpoint', () => {
  expect(unknownParameter('zzz', ['limit', 'offset'])).toBe(
    'unknown query parameter zzz; this endpoint accepts limit, offset',
  );
  expect(unknownParameter('limit', [])).toBe('unknown query parameter limit; this endpoint accepts none');
});

test('a name of any length and any characters is compared within bounds and shown as well-formed text', () => {
  const detail = unknownParameter(`${'\u{1f600}'.repeat(40)}\ud800`, names);
  expect(detail.isWellFormed()).toBe(true);
  expect(unknownParameter('x'.repeat(100_000), names).length).toBeLessThan(300);
});

test('only lists may be repeated, however their schema is wrapped', () => {
  const schema = z
    .object({
      plain: z.string().optional(),
      number: z.string().transform(Number).pipe(z.int()).default(1),
      list: listParam(z.string()).optional().describe('A list'),
      array: z.array(z.string()).default([]),
    })
    .refine(() => true);
  const refused = (query: Record<string, unknown>): unknown => {
    try {
      checkQueryNames(schema, query);
      return null;
    } catch (error) {
      return (error as Error).message;
    }
  };
  expect(refused({ plain: 'a', number: '1', list: ['a', 'b'], array: ['a', 'b'] })).toBeNull();
  expect(refused({ plain: ['a', 'b'] })).toBe('plain: may be given only once');
  expect(refused({ number: ['1', '2'] })).toBe('number: may be given only once');
  expect(refused({ __proto__: null, constructor: 'x' })).toContain('unknown query parameter constructor');
});

const withFamily = z.object({ agent_id: z.string().optional(), 'attributes.<path>': z.unknown().optional() });

test('every name that begins as a family does is a member of it', () => {
  const query = { agent_id: 'a', 'attributes.region': 'eu', 'attributes.a.b': ['1', '2'] };
  checkQueryNames(withFamily, query);
  expect(familiesFolded(withFamily, query)).toEqual({
    agent_id: 'a',
    'attributes.<path>': { 'attributes.region': 'eu', 'attributes.a.b': ['1', '2'] },
  });
  expect(familiesFolded(withFamily, { agent_id: 'a' })).toEqual({ agent_id: 'a' });
});

test.each([
  ['attribute.region', 'attributes.region'],
  ['Attributes.app.tier', 'attributes.app.tier'],
  ['attributes.', 'attributes.<path>'],
  ['attributes', 'attributes.<path>'],
  ['attributes.<path>X', 'attributes.<path>'],
])('a misspelt member of a family, %s, is answered with %s', (given, nearest) => {
  expect(() => {
    checkQueryNames(withFamily, { [given]: '1' });
  }).toThrow(`unknown query parameter ${given}; did you mean ${nearest}?`);
});
