import { describe, expect, it } from 'vitest';
import { isAllowedFormat, refusalOf } from '../../../api/telemetry/analysts/check.ts';
import { isAllowedFunction, isAllowedTableFunction } from '../../../api/telemetry/analysts/functions.ts';

const options = { database: 'millrace_org', isFunction: (name: string) => ['file', 'plus', 'hostname'].includes(name) };
/** Returns the parser's output for SELECT <expressions>. */
const select = (...lines: string[]): string =>
  [
    'SelectWithUnionQuery (children 1)',
    ' ExpressionList (children 1)',
    '  SelectQuery (children 1)',
    '   ExpressionList (children 1)',
    ...lines,
  ].join('\n');
const check = (ast: string, query = ''): string | null => refusalOf(query, ast, options)?.message ?? null;

describe('the parser’s tree of a query', () => {
  it.each([
    [
      'a function',
      select('    Function countIf (alias n) (children 1)', '     ExpressionList (children 1)', '      Identifier x'),
    ],
    ['a format', `${select('    Literal UInt64_1')}\n Identifier JSONEachRow`],
    [
      'a view',
      select(
        '    Asterisk',
        '   TablesInSelectQuery (children 1)',
        '    TablesInSelectQueryElement (children 1)',
        '     TableExpression (children 1)',
        '      TableIdentifier analyst_spans',
      ),
    ],
    ['a column of the name of a function, by its table', select('    Identifier s.file')],
    [
      'a function handed to another',
      select('    Function arrayFold (children 1)', '     ExpressionList (children 1)', '      Identifier plus'),
    ],
    ['an explanation', `Explain EXPLAIN SYNTAX (children 1)\n${select('    Literal UInt64_1').replace(/^/gm, ' ')}`],
    ['a statement about a view', 'ExistsTableQuery  x (children 1)\n Identifier x'],
  ])('a query is permitted: %s', (_, ast) => {
    expect(check(ast)).toBeNull();
  });

  it.each([
    [
      'a function',
      select('    Function file (children 1)', '     ExpressionList (children 1)', "      Literal \\'x\\'"),
      'function file',
    ],
    ['in whatever case', select('    Function FiLe (children 1)'), 'function FiLe'],
    ['a function that no list knows', select('    Function brandNew (children 1)'), 'not on the list'],
    [
      'a function handed to another',
      select('    Function arrayMap (children 1)', '     ExpressionList (children 2)', '      Identifier file'),
      'name of a function',
    ],
    ['a function under an alias', select('    Identifier hostName (alias x)'), 'name of a function'],
    [
      'a line made by an alias',
      select('    Identifier a (alias x', '    Function length)', '    Function file (children 1)'),
      'Not for analysts',
    ],
    ['an unknown part', select('    BrandNewNode'), 'BrandNewNode'],
    [
      'APPLY',
      select('    Asterisk (children 1)', '     ColumnsTransformerList (children 1)', '      ColumnsApplyTransformer'),
      'APPLY',
    ],
    ['settings', `${select('    Literal UInt64_1')}\n Set`, 'SETTINGS'],
    [
      'a file for the answer',
      `${select('    Literal UInt64_1')}\n Literal \\'/tmp/x\\'\n Identifier CSV`,
      'INTO OUTFILE',
    ],
    ['a format with a schema', `${select('    Literal UInt64_1')}\n Identifier Template`, 'format Template'],
    [
      'a table function',
      select(
        '    Asterisk',
        '   TablesInSelectQuery (children 1)',
        '    TablesInSelectQueryElement (children 1)',
        '     TableExpression (children 1)',
        '      Function url (children 1)',
      ),
      'table function url',
    ],
    [
      'another database',
      select(
        '    Asterisk',
        '   TablesInSelectQuery (children 1)',
        '    TablesInSelectQueryElement (children 1)',
        '     TableExpression (children 1)',
        '      TableIdentifier millrace.spans',
      ),
      'table millrace.spans',
    ],
    [
      'a table of system',
      select(
        '    Asterisk',
        '   TablesInSelectQuery (children 1)',
        '    TablesInSelectQueryElement (children 1)',
        '     TableExpression (children 1)',
        '      TableIdentifier system.processes',
      ),
      'table system.processes',
    ],
    [
      'an explanation of indexes',
      `Explain EXPLAIN (children 2)\n Set\n${select('    Literal UInt64_1').replace(/^/gm, ' ')}`,
      'EXPLAIN takes',
    ],
    [
      'an explanation with settings',
      `Explain EXPLAIN AST (children 2)\n Set\n${select('    Literal UInt64_1').replace(/^/gm, ' ')}`,
      'EXPLAIN takes no settings',
    ],
    ['another statement', 'InsertQuery   (children 1)\n Identifier x', 'only SELECT'],
    ['statements side by side', 'ParallelWithQuery 2 SelectWithUnionQuery (children 2)', 'only SELECT'],
    ['nothing', '', 'not a query'],
  ])('a query is rejected: %s', (_, ast, message) => {
    expect(check(ast)).toContain(message);
  });

  it.each([
    ['SHOW TABLES', true],
    ["show full tables from millrace_org like 'analyst%' limit 3 format JSON;", true],
    ['SHOW COLUMNS FROM analyst_spans', true],
    ["SHOW TABLES WHERE file('x') != ''", false],
    ["SHOW TABLES LIKE '\\' OR file(1)'", false],
    ['SHOW DICTIONARIES', false],
    ["SHOW TABLES INTO OUTFILE 'x'", false],
  ])('of SHOW only this form is recognised: %s', (query, allowed) => {
    expect(check('ShowTables', query) === null).toBe(allowed);
  });
});

describe('names in strings', () => {
  const call = (name: string, ...args: string[]): string =>
    select(
      `    Function ${name} (children 1)`,
      `     ExpressionList (children ${args.length})`,
      ...args.map((arg) => `      ${arg}`),
    );
  const text = (value: string): string => `Literal '${value}'`;

  it.each([
    ['an aggregate function', call('arrayReduce', text('sum'), 'Identifier x')],
    [
      'one with combinators and parameters',
      call('arrayReduce', text('quantilesIf(0.5, 0.9)'), 'Identifier x', 'Identifier y'),
    ],
    ['one under an alias', call('initializeAggregation', `${text('uniqState')} (alias f)`, 'Identifier x')],
    ['one by ranges', call('arrayReduceInRanges', text('max'), 'Identifier r', 'Identifier x')],
    ['a type', call('CAST', 'Identifier x', text('Nullable(UInt8)'))],
    ['the type of a state', call('CAST', 'Identifier x', text('AggregateFunction(1, quantiles(0.5), UInt8)'))],
    ['a type in JSON', call('JSONExtract', 'Identifier x', text('a'), text('Array(String)'))],
    ['an alternative to a value in JSON', call('JSONExtractString', 'Identifier x', 'Identifier key')],
  ])('a query with names in strings is permitted: %s', (_, ast) => {
    expect(check(ast)).toBeNull();
  });

  it.each([
    [
      'an aggregate function that no list knows',
      call('arrayReduce', text('brandNew'), 'Identifier x'),
      'function brandNew',
    ],
    [
      'one that writes by a schema',
      call('arrayReduce', text('groupFormat(1)'), 'Identifier x'),
      'function groupFormat',
    ],
    [
      'one with a combinator',
      call('initializeAggregation', text('aggThrowState'), 'Identifier x'),
      'function aggThrowState',
    ],
    [
      'one by ranges',
      call('arrayReduceInRanges', text('flameGraph'), 'Identifier x', 'Identifier y'),
      'function flameGraph',
    ],
    ['a function in other letters', call('ArrayReduce', text('aggThrow'), 'Identifier x'), 'function aggThrow'],
    [
      'a name that is put together',
      call(
        'arrayReduce',
        'Function concat (children 1)',
        ' ExpressionList (children 2)',
        `  ${text('agg')}`,
        `  ${text('Throw')}`,
      ),
      'written as a string',
    ],
    ['a name under an alias', call('arrayReduce', 'Identifier f', 'Identifier x'), 'written as a string'],
    ['a name in quotes', call('arrayReduce', text('`aggThrow`'), 'Identifier x'), 'written as a string'],
    ['no name', call('arrayReduce'), 'written as a string'],
    [
      'the type of a state',
      call('CAST', 'Identifier x', text('AggregateFunction(groupFormat(1), UInt8)')),
      'function groupFormat',
    ],
    [
      'a type inside another',
      call('CAST', 'Identifier x', text('Array(Tuple(SimpleAggregateFunction(aggThrow, UInt8)))')),
      'aggThrow',
    ],
    [
      'a second state',
      call('_CAST', 'Identifier x', text('Tuple(AggregateFunction(sum, Int8), AggregateFunction(aggThrow, Int8))')),
      'aggThrow',
    ],
    [
      'a state whose name is quoted',
      call('CAST', 'Identifier x', text('AggregateFunction(`aggThrow`, UInt8)')),
      'without quotes',
    ],
    [
      'a type that is put together',
      call('CAST', 'Identifier x', 'Function concat (children 1)'),
      'written as a string',
    ],
    ['a type by its name', call('defaultValueOfTypeName', text('AggregateFunction(aggThrow, Int8)')), 'aggThrow'],
    ['a type in JSON', call('JSONExtract', 'Identifier x', text('AggregateFunction(aggThrow, Int8)')), 'aggThrow'],
  ])('a query with names in strings is rejected: %s', (_, ast, message) => {
    expect(check(ast)).toContain(message);
  });
});

describe('formats', () => {
  it.each([
    'JSONEachRow',
    'JSON',
    'JSONCompactStringsEachRowWithNamesAndTypes',
    'JSONColumnsWithMetadata',
    'TSVWithNames',
    'PrettyCompact',
    'Parquet',
  ])('the format %s is permitted', (name) => {
    expect(isAllowedFormat(name)).toBe(true);
  });

  it.each([
    'JSONEachRowWithProgress',
    'JSONStringsEachRowWithProgress',
    'JSONCompactEachRowWithProgress',
    'JSONCompactStringsEachRowWithProgress',
    'JSONBrandNew',
    'Template',
    'Protobuf',
  ])('the format %s is not permitted', (name) => {
    expect(isAllowedFormat(name)).toBe(false);
  });
});

describe('the lists', () => {
  it.each([
    'sum',
    'COUNT',
    'countDistinctIf',
    'quantilesTDigestIf',
    'toStartOfInterval',
    'JSONExtractString',
    'lambda',
  ])('the function %s is permitted', (name) => {
    expect(isAllowedFunction(name)).toBe(true);
  });

  it.each([
    'file',
    'FILE',
    'fileIf',
    'dictGetOrNull',
    'joinGet',
    '__getScalar',
    'getClientHTTPHeader',
    'nothingKnown',
    '',
  ])('the function %s is not permitted', (name) => {
    expect(isAllowedFunction(name)).toBe(false);
  });

  it.each(['file', 'url', 'remote', 'merge', 'values', 'view', 'mergeTreeIndex', 'input'])(
    'the table function %s is not permitted',
    (name) => {
      expect(isAllowedTableFunction(name)).toBe(false);
    },
  );
});
