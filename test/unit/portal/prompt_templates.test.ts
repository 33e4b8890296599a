// Templates of prompts in the portal: the variables and the rendering are those of the service, and
// the state of the playground goes through the address.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { promptVariables, renderPrompt } from '../../../pipeline/domain/text/prompt.ts';
import { variablePlaces } from '../../../api/portal/web/editor/variables.ts';
import { promptUrl } from '../../../api/portal/web/screens/prompts/prompts_url.ts';
import {
  asType,
  missingValues,
  rendered,
  type Template,
  variablesOf,
} from '../../../api/portal/web/screens/prompts/template.ts';
import { type Kept, packed, unpacked } from '../../../api/portal/web/screens/prompts/playground/kept.ts';
import { columnsOf, firstColumns } from '../../../api/portal/web/screens/prompts/playground/state.ts';

const pieces = fc.constantFrom(
  '{{a}}',
  '{{ b }}',
  '{{a.b}}',
  '{{größe}}',
  '{{',
  '}}',
  '{{a b}}',
  '{{a}}}',
  'text ',
  '\n',
  '<b>',
  '$&',
);
const text = fc.array(pieces, { maxLength: 12 }).map((parts) => parts.join(''));
const template: fc.Arbitrary<Template> = fc.oneof(
  text,
  fc.array(fc.record({ role: fc.constantFrom('system', 'user'), content: text }), { minLength: 1, maxLength: 4 }),
);
const values = fc.dictionary(
  fc.constantFrom('a', 'b', 'a.b', 'größe'),
  fc.oneof(fc.string(), fc.integer(), fc.constant(null), fc.record({ b: fc.string() })),
);

describe('a template in the portal', () => {
  it('has the variables and the rendering that the service gives it', () => {
    fc.assert(
      fc.property(template, values, (given, known) => {
        const expected = renderPrompt(given, known);
        expect(variablesOf(given)).toEqual(promptVariables(given));
        expect(rendered(given, known)).toEqual(expected.messages);
        expect(new Set(missingValues(given, known))).toEqual(new Set(expected.missing));
      }),
    );
  });

  it('names the place of each variable in its text', () => {
    const given = 'a {{ name }} and {{name}}';
    expect(variablePlaces(given).map(({ from, to }) => given.slice(from, to))).toEqual(['{{ name }}', '{{name}}']);
  });

  it('keeps every text when its form changes', () => {
    expect(asType('one', 'chat')).toEqual([{ role: 'user', content: 'one' }]);
    expect(
      asType(
        [
          { role: 'system', content: 'one' },
          { role: 'user', content: 'two' },
        ],
        'text',
      ),
    ).toBe('one\n\ntwo');
  });
});

describe('the address of a prompt', () => {
  const version = fc.stringMatching(/^[A-Za-z0-9_.-]{1,12}$/);
  const run = fc.record({ version, model: fc.string({ maxLength: 12, unit: 'binary' }), isDraft: fc.boolean() });

  it('holds version, comparison, view and columns without a loss', () => {
    fc.assert(
      fc.property(
        fc.record({
          version: fc.oneof(fc.constant(''), version),
          against: fc.oneof(fc.constant(''), version),
          view: fc.constantFrom('template' as const, 'usage' as const, 'playground' as const),
          runs: fc.array(run, { maxLength: 3 }),
        }),
        (state) => {
          expect(promptUrl.parse(promptUrl.write(state))).toEqual(state);
        },
      ),
    );
  });

  it('never fails on what somebody typed', () => {
    fc.assert(
      fc.property(fc.string(), (typed) => {
        expect(promptUrl.parse(`runs=${encodeURIComponent(typed)}`).runs.length).toBeLessThanOrEqual(3);
      }),
    );
    expect(promptUrl.parse('runs=1@%25zz').runs).toEqual([{ version: '1', model: '%zz', isDraft: false }]);
  });
});

describe('the columns of the playground', () => {
  it('begin with the version and a draft of it, or with the two versions that are compared', () => {
    expect(firstColumns('3', '', 'm')).toEqual([
      { version: '3', model: 'm', isDraft: false },
      { version: '3', model: 'm', isDraft: true },
    ]);
    expect(firstColumns('3', '2', 'm').map(({ version }) => version)).toEqual(['2', '3']);
  });

  it('keep their keys when another column is added, changed or removed', () => {
    const [a, b] = firstColumns('3', '', 'm');
    if (a === undefined || b === undefined) throw new Error('two columns are needed');
    const first = columnsOf([a, b], []);
    expect(columnsOf([{ ...b, model: 'other' }], first).map(({ id }) => id)).toEqual([first[1]?.id]);
    const ids = columnsOf([a, b, b], first).map(({ id }) => id);
    expect(ids.slice(0, 2)).toEqual(first.map(({ id }) => id));
    expect(new Set(ids).size).toBe(3);
  });
});

describe('playgrounds that a reload brings back', () => {
  const kept = (text: string): Kept => ({
    drafts: [{ version: '1', template: text }],
    inputs: [{ source: { kind: 'hand' }, values: { a: text } }],
  });

  it('go through the store of the tab', () => {
    expect(unpacked(packed([['p', kept('text')]]))).toEqual([['p', kept('text')]]);
  });

  it('are the newest five, with at most a million characters in all', () => {
    const many = Array.from({ length: 9 }, (_, at): [string, Kept] => [`p${at}`, kept('x')]);
    expect(unpacked(packed(many)).map(([place]) => place)).toEqual(['p0', 'p1', 'p2', 'p3', 'p4']);
    const large = Array.from({ length: 5 }, (_, at): [string, Kept] => [`p${at}`, kept('x'.repeat(200_000))]);
    expect(unpacked(packed(large)).map(([place]) => place)).toEqual(['p0', 'p1']);
    expect(unpacked(packed([['p', kept('x'.repeat(600_000))]]))).toEqual([]);
  });

  it.each([null, '', '{', '{}', '[1]', '[["p", null]]', '[["p", {"drafts": 1, "inputs": null}]]'])(
    'are none where the store holds %s',
    (text) => {
      expect(unpacked(text)).toEqual([]);
    },
  );
});
