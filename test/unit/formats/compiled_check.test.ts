// The compiled check of each format agrees with its zod shape about every value, and accepts by
// itself what SDKs send, so that zod runs only to explain a rejection.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compileCheck } from '../../../schemas/formats/compiled_check.ts';
import { EVENT_SCHEMAS, checkEvent, type IngestFormat } from '../../../schemas/formats/formats.ts';
import { anthropicToolUse, customTool, langChainRun, openAiToolCall, pageView, withField } from './payloads.ts';

type Path = readonly (string | number)[];

/** Every field that the shapes share, with a value that they accept. */
const SHARED = {
  trace_id: 'trace-1',
  span_id: 'span.1',
  parent_span_id: 'span:0',
  tags: ['a', 'b'],
  attributes: { cost_usd: '0.25', sandbox_seconds: 3, other: [1, { deep: true }] },
  cost_usd: 0.5,
  sandbox_seconds: '12.5',
  started_at: '2026-01-31T12:00:00.000Z',
  ended_at: '2026-01-31T13:00:00+01:00',
  duration_ms: 812,
  outcome: 'success',
};
const SAMPLES: readonly [IngestFormat, Record<string, unknown>][] = [
  ['chatcompletion', openAiToolCall(SHARED)],
  ['messages', anthropicToolUse(SHARED)],
  ['chain', langChainRun({ ...SHARED, agent_name: 'planner' })],
  ['custom', customTool({ ...SHARED, event_type: 'tool' })],
  ['app', pageView({ ...SHARED, timestamp: '2026-01-31T12:00:00Z', url: 'https://x.test/', user_id: 'u' })],
];

function pathsOf(value: unknown, at: Path = []): Path[] {
  if (typeof value !== 'object' || value === null) return [at];
  return [
    at,
    ...Object.entries(value).flatMap(([key, inner]) =>
      pathsOf(inner, [...at, Array.isArray(value) ? Number(key) : key]),
    ),
  ];
}

/** Values at the bounds of the shapes, and beyond them. `undefined` removes the field. */
const EDGES: readonly unknown[] = [
  undefined,
  null,
  true,
  '',
  'x',
  '.',
  '..',
  'a/b',
  'id\n',
  'x'.repeat(128),
  'x'.repeat(129),
  'x'.repeat(256),
  'x'.repeat(257),
  'x'.repeat(1024),
  'x'.repeat(1025),
  // Two UTF-16 code units each; zod counts code points.
  '😀'.repeat(256),
  '😀'.repeat(257),
  '😀'.repeat(1024),
  '😀'.repeat(1025),
  '\ud800',
  'success',
  'Success',
  '2026-02-30T12:00:00Z',
  '2026-01-31T12:00',
  '2026-01-31',
  '0',
  '0.1',
  '-1',
  '1e3',
  '999999',
  '999999.0000001',
  '1000000000',
  '1000000001',
  '123456789012.5',
  '0.1\n',
  0,
  -0,
  -1,
  0.5,
  1,
  1000,
  999_999,
  999_999.5,
  1_000_000_000,
  1_000_000_001,
  1_000_000_000_000,
  1_000_000_000_001,
  Number.MAX_SAFE_INTEGER,
  Number.MAX_SAFE_INTEGER + 1,
  1e300,
  // What JSON.parse makes of 1e999.
  Infinity,
  [],
  [[]],
  ['a'],
  ['a', 'b'],
  ['a', 'b', 'c'],
  [['a', 'b']],
  [['a', 'b', 'c']],
  [['a', 1]],
  Array.from({ length: 257 }, () => 'x'),
  Array.from({ length: 1001 }, () => ['a', 'b']),
  {},
  { type: 'text' },
  { type: 'text', text: 1 },
  { role: 'user', content: 'x' },
  { cost_usd: -1 },
  JSON.parse('{"__proto__": {"cost_usd": -1}}'),
];

const edited = (sample: Record<string, unknown>): fc.Arbitrary<unknown> => {
  const paths = pathsOf(sample).filter((path) => path.length > 0);
  const value = fc.oneof(fc.constantFrom(...EDGES), fc.jsonValue(), fc.string({ unit: 'binary' }), fc.double());
  return fc
    .array(fc.tuple(fc.constantFrom(...paths), value), { minLength: 1, maxLength: 3 })
    .map((edits) => edits.reduce(editedAt, sample));
};

/** Sets a field where an earlier edit left a place for it. */
function editedAt(event: Record<string, unknown>, [path, value]: [Path, unknown]): Record<string, unknown> {
  let holder: unknown = event;
  for (const key of path.slice(0, -1))
    holder = typeof holder === 'object' && holder !== null ? (holder as Record<string, unknown>)[String(key)] : null;
  return typeof holder === 'object' && holder !== null ? withField(event, path, value) : event;
}

describe.each(SAMPLES)('%s', (format, sample) => {
  const check = compileCheck(EVENT_SCHEMAS[format]);

  it('accepts an event with every field', () => {
    expect(EVENT_SCHEMAS[format].safeParse(sample).error).toBeUndefined();
    expect(check(sample)).toBe(true);
  });

  it('agrees with zod about edited events', () => {
    const seen = { accepted: 0, rejected: 0 };
    fc.assert(
      fc.property(edited(sample), (event) => {
        const accepted = EVENT_SCHEMAS[format].safeParse(event).success;
        seen[accepted ? 'accepted' : 'rejected'] += 1;
        expect(check(event)).toBe(accepted);
      }),
      { numRuns: 600 },
    );
    expect(Math.min(seen.accepted, seen.rejected)).toBeGreaterThan(50);
  });

  it('agrees with zod about any single field set to a value at a bound', () => {
    for (const path of pathsOf(sample).filter(({ length }) => length > 0))
      for (const value of EDGES) {
        const event = withField(sample, path, value);
        if (check(event) !== EVENT_SCHEMAS[format].safeParse(event).success)
          expect.fail(`${path.join('.')} = ${JSON.stringify(value)}: compiled ${String(check(event))}`);
      }
  });

  it('agrees with zod about values that are no events', () => {
    fc.assert(
      fc.property(fc.oneof(fc.jsonValue(), fc.constantFrom(...EDGES)), (value) => {
        expect(check(value)).toBe(EVENT_SCHEMAS[format].safeParse(value).success);
      }),
    );
  });

  it('neither changes nor copies an event', () => {
    const before = structuredClone(sample);
    const checked = checkEvent(format, sample);
    expect(checked.ok && checked.value).toBe(sample);
    expect(sample).toEqual(before);
  });
});
