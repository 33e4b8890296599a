import { describe, expect, it } from 'vitest';
import { refusalOf } from '../../../api/analysts/check.ts';
import { isAllowedFunction, isAllowedTableFunction } from '../../../api/analysts/functions.ts';

const options = { database: 'millrace_org', isFunction: (name: string) => ['file', 'plus', 'hostname'].includes(name) };
/** What the parser says of SELECT <expressions>. */
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
    ['a function', select('    Function countIf (alias n) (children 1)', '     ExpressionList (children 1)', '      Identifier x')],
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
  ])('is let through: %s', (_, ast) => {
    expect(check(ast)).toBeNull();
  });

  it.each([
    ['a function', select('    Function file (children 1)', '     ExpressionList (children 1)', "      Literal \\'x\\'"), 'function file'],
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
    ['APPLY', select('    Asterisk (children 1)', '     ColumnsTransformerList (children 1)', '      ColumnsApplyTransformer'), 'APPLY'],
    ['settings', `${select('    Literal UInt64_1')}\n Set`, 'SETTINGS'],
    ['a file for the answer', `${select('    Literal UInt64_1')}\n Literal \\'/tmp/x\\'\n Identifier CSV`, 'INTO OUTFILE'],
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
      'no millrace.spans',
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
      'no system.processes',
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
  ])('is refused: %s', (_, ast, message) => {
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
  ])('knows of SHOW only the form: %s', (query, allowed) => {
    expect(check('ShowTables', query) === null).toBe(allowed);
  });
});

describe('the lists', () => {
  it.each(['sum', 'COUNT', 'countDistinctIf', 'quantilesTDigestIf', 'toStartOfInterval', 'JSONExtractString', 'lambda'])(
    'allow %s',
    (name) => {
      expect(isAllowedFunction(name)).toBe(true);
    },
  );

  it.each(['file', 'FILE', 'fileIf', 'dictGetOrNull', 'joinGet', '__getScalar', 'getClientHTTPHeader', 'nothingKnown', ''])(
    'do not allow %s',
    (name) => {
      expect(isAllowedFunction(name)).toBe(false);
    },
  );

  it.each(['file', 'url', 'remote', 'merge', 'values', 'view', 'mergeTreeIndex', 'input'])('do not allow the table function %s', (name) => {
    expect(isAllowedTableFunction(name)).toBe(false);
  });
});
