// A trace erased from the store does not return with its old state when a late event of it arrives.
import { expect, it } from 'vitest';
import { OpenTraces } from '../../../pipeline/traces/open_traces.ts';
import { anEvent, aSpan } from '../../support/spans.ts';

const LIMITS = { graceMs: 10, idleMs: 20, openMax: 100, doneMax: 100, judgedFromStoreMax: 100 };
const ann = aSpan({ trace_id: 'trc_ann', user_id: 'ann' });
const bob = aSpan({ trace_id: 'trc_bob', user_id: 'bob' });
const late = aSpan({ trace_id: 'trc_ann' });

for (const state of ['open', 'complete'] as const)
  it(`a trace that is ${state} is forgotten; the others stay`, () => {
    const book = new OpenTraces(0, LIMITS);
    book.apply(anEvent(1, ann));
    book.apply(anEvent(2, bob));
    book.takeRows();
    if (state === 'complete') book.tick(Number.MAX_SAFE_INTEGER);
    book.takeEvents();
    book.forget('org_a', ['trc_ann', 'trc_unknown']);
    book.tick(Number.MAX_SAFE_INTEGER);
    const told = book.takeEvents().map(({ event, trace_id }) => [event, trace_id]);
    expect(told).toEqual(state === 'open' ? [['trace.completed', 'trc_bob']] : []);
    // Its row has to be looked up in the store, where there is none.
    expect(book.missing([late, bob])).toEqual([{ org_id: 'org_a', trace_id: 'trc_ann' }]);
    book.apply(anEvent(3, late));
    const rows = book.takeRows();
    expect(rows.map(({ trace_id }) => trace_id)).toEqual(['trc_ann']);
    expect(rows[0]?.wire).not.toContain('ann');
  });
