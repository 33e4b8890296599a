import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { EMPTY_LIST, parseListUrl, writeListUrl } from '../../../api/portal/web/lists/list_url.ts';
import {
  addValue,
  applyQueryText,
  chipsOf,
  parseQueryText,
  removeValue,
} from '../../../api/portal/web/lists/query_text.ts';
import {
  BUILT_IN_VIEWS,
  changedFrom,
  currentTab,
  queryToSave,
  stateOfView,
} from '../../../api/portal/web/views/view_tabs.ts';

const hostile = fc.string({
  unit: fc.constantFrom('a', 'é', '&', '=', '%', '+', ',', ':', '"', '-', ' ', '#', '\ud800', '%F0', 'tags'),
});

describe('the text of a query field', () => {
  it('is filters where a name of the API stands before the colon, and search words elsewhere', () => {
    expect(parseQueryText('agent_id:planner -tags:prod refund "declined card" http://x')).toEqual({
      chips: [
        { name: 'agent_id', value: 'planner' },
        { name: 'not_tags', value: 'prod' },
      ],
      search: 'refund "declined card" http://x',
    });
  });

  it('takes a value in quotation marks whole', () => {
    expect(parseQueryText('root_span_name:"book flight" go').chips).toEqual([
      { name: 'root_span_name', value: 'book flight' },
    ]);
  });

  it.each(['agent_id:', 'agent_id:""', ':planner', '-search:x', '"agent_id'])('leaves %s a search word', (text) => {
    expect(parseQueryText(text).chips).toEqual([]);
  });

  it('is read without an error whatever is typed', () => {
    fc.assert(
      fc.property(hostile, (text) => {
        const written = writeListUrl(applyQueryText(EMPTY_LIST, text));
        expect(writeListUrl(parseListUrl(written))).toBe(written);
      }),
    );
  });

  it('adds its chips to those that are there and replaces the search', () => {
    const state = applyQueryText(parseListUrl('agent_id=a&search=old'), 'agent_id:b new words');
    expect(writeListUrl(state)).toBe('agent_id=a,b&search=new%20words');
  });

  it('gives one chip per value, and takes one value out', () => {
    const state = addValue(parseListUrl('tags=a'), 'tags', 'b');
    expect(chipsOf(state)).toEqual([
      { name: 'tags', value: 'a' },
      { name: 'tags', value: 'b' },
    ]);
    expect(writeListUrl(removeValue(state, 'tags', 'a'))).toBe('tags=b');
  });
});

describe('the views of a list', () => {
  const [all, errors] = BUILT_IN_VIEWS;

  it('keep the time range of the list where they name none', () => {
    const state = errors === undefined ? null : stateOfView(errors, parseListUrl('t=7d&live=1'));
    expect(state === null ? '' : writeListUrl(state)).toBe('live=1&outcome=error,timeout&t=7d&view=errors');
  });

  it('show the tab whose query the list has', () => {
    expect(currentTab(parseListUrl('t=7d'), BUILT_IN_VIEWS)).toBe(all);
    expect(currentTab(parseListUrl('outcome=error,timeout'), BUILT_IN_VIEWS)).toBe(errors);
    expect(currentTab(parseListUrl('agent_id=planner'), BUILT_IN_VIEWS)).toBeNull();
  });

  it('say that the list was changed against the view that it names', () => {
    const state = parseListUrl('view=errors&outcome=error,timeout');
    expect(errors !== undefined && changedFrom(errors, state)).toBe(false);
    expect(errors !== undefined && changedFrom(errors, addValue(state, 'tags', 'prod'))).toBe(true);
  });

  it('are saved without the open trace and the view that they began with', () => {
    expect(queryToSave(parseListUrl('outcome=error&peek=trc_1&view=v&live=1&t=7d'))).toBe('outcome=error&t=7d');
  });
});
