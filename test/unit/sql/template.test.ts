import { describe, expect, it } from 'vitest';
import { parseTemplate, renderTemplate } from '../../../sql/client/template.ts';

const noInclude = (): never => {
  throw new Error('nothing is included here');
};
const render = (sql: string, params: Record<string, unknown>) => renderTemplate(parseTemplate(sql, noInclude), params);

describe('query templates', () => {
  it('query templates keep a part only when its parameter is given', () => {
    const sql = 'SELECT 1 WHERE a = {a:String}/*if b*/ AND b = {b:String}/*end*/';
    expect(render(sql, { a: 'x', b: undefined })).toEqual({ sql: 'SELECT 1 WHERE a = {a:String}', params: { a: 'x' } });
    expect(render(sql, { a: 'x', b: 'y' })).toEqual({
      sql: 'SELECT 1 WHERE a = {a:String} AND b = {b:String}',
      params: { a: 'x', b: 'y' },
    });
  });

  it('query templates give each element of a list its own parameters, in every part that names the list', () => {
    const sql =
      'SELECT /*each words with +*/f({words_word:String}, {words_hash:UInt32})/*end*/ WHERE /*each words with OR*/g({words_word:String})/*end*/';
    const words = [
      { word: "x'; DROP TABLE spans --", hash: 1 },
      { word: '{words_hash:UInt32}', hash: 2 },
    ];
    expect(render(sql, { words })).toEqual({
      sql: 'SELECT f({words_word_0:String}, {words_hash_0:UInt32}) + f({words_word_1:String}, {words_hash_1:UInt32}) WHERE g({words_word_0:String}) OR g({words_word_1:String})',
      params: {
        words_word_0: "x'; DROP TABLE spans --",
        words_hash_0: 1,
        words_word_1: '{words_hash:UInt32}',
        words_hash_1: 2,
      },
    });
  });

  it('query templates omit everything of an empty list', () => {
    expect(render('SELECT 0 /*each words*/+ f({words_word:String})/*end*/', { words: [] })).toEqual({
      sql: 'SELECT 0 ',
      params: {},
    });
  });

  it('query templates may be nested', () => {
    const sql = 'a /*if on*/b /*each xs with ,*/{xs_v:UInt8}/*end*/ c/*end*/';
    expect(render(sql, { on: true, xs: [{ v: 1 }, { v: 2 }] }).sql).toBe('a b {xs_v_0:UInt8} , {xs_v_1:UInt8} c');
    expect(render(sql, { xs: [{ v: 1 }] })).toEqual({ sql: 'a ', params: { xs: [{ v: 1 }] } });
  });

  it('query templates bind plain lists whole', () => {
    expect(render('SELECT {ids:Array(String)}', { ids: ['a', 'b'] }).params).toEqual({ ids: ['a', 'b'] });
  });

  it('query templates include other files and omit comment lines', () => {
    const included = parseTemplate('-- said elsewhere\norg_id = {org_id:String}', noInclude);
    const template = parseTemplate('-- what it is\nSELECT 1\nWHERE /*include traces/filters.sql*/', (path) => {
      expect(path).toBe('traces/filters.sql');
      return included;
    });
    expect(renderTemplate(template, { org_id: 'o' }).sql).toBe('SELECT 1\nWHERE org_id = {org_id:String}');
  });

  it('query templates render a part for every element as if its fields were the parameters', () => {
    const sql =
      'SELECT [/*every sets with ,*/a = {a:String}/*if b*/ AND b IN {b:Array(String)}/*end*//*each words with OR*/ AND w = {words_w:String}/*end*//*end*/] WHERE a = {a:String}';
    const sets = [
      { a: 'x', b: ['{a:String}'], words: [] },
      { a: 'y', words: [{ w: 1 }, { w: 2 }] },
    ];
    expect(render(sql, { a: 'z', sets })).toEqual({
      sql: 'SELECT [a = {sets_0_a:String} AND b IN {sets_0_b:Array(String)} , a = {sets_1_a:String} AND w = {sets_1_words_w_0:String} OR  AND w = {sets_1_words_w_1:String}] WHERE a = {a:String}',
      params: {
        a: 'z',
        sets_0_a: 'x',
        sets_0_b: ['{a:String}'],
        sets_1_a: 'y',
        sets_1_words_w_0: 1,
        sets_1_words_w_1: 2,
      },
    });
    expect(render(sql, { a: 'z', sets: [] }).sql).toBe('SELECT [] WHERE a = {a:String}');
  });

  it.each(['a /*if b*/ c', 'a /*end*/ b'])('query templates reject marks without a counterpart: %s', (sql) => {
    expect(() => parseTemplate(sql, noInclude)).toThrow('/*end*/');
  });
});
