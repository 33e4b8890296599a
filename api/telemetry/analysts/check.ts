// Decides whether a query of an analyst may run, from the tree that the engine's own parser returns
// (EXPLAIN AST): statements, functions, tables and formats are checked against allow lists. This is
// the first of two fences; grants and row policies in the engine are the second. Pure: takes the
// text of the tree, returns the refusal or null.
import { isAllowedFunction, isAllowedTableFunction, whyLeftOut } from './functions.ts';
import { problemOfNames } from './names.ts';

/** The reason for which a query is rejected, as an exception of ClickHouse. */
export interface Refusal {
  code: number;
  type: string;
  message: string;
}

export interface CheckOptions {
  /** Database of the views. */
  database: string;
  /** Returns whether the engine has a function of this name, in lower case. */
  isFunction: (name: string) => boolean;
}

/**
 * Allowed parts of a SELECT. Everything else is rejected, such as settings, and APPLY, whose
 * function the parser does not print.
 */
const NODES = new Set([
  'SelectWithUnionQuery',
  'SelectQuery',
  'SelectIntersectExceptQuery',
  'ExpressionList',
  'Function',
  'Identifier',
  'TableIdentifier',
  'Literal',
  'Subquery',
  'Asterisk',
  'QualifiedAsterisk',
  'ColumnsTransformerList',
  'ColumnsExceptTransformer',
  'ColumnsReplaceTransformer',
  'ColumnsReplaceTransformer::Replacement',
  'ColumnsRegexpMatcher',
  'ColumnsListMatcher',
  'QualifiedColumnsRegexpMatcher',
  'QualifiedColumnsListMatcher',
  'TablesInSelectQuery',
  'TablesInSelectQueryElement',
  'TableExpression',
  'TableJoin',
  'ArrayJoin',
  'SampleRatio',
  'OrderByElement',
  'InterpolateElement',
  'WindowDefinition',
  'WindowListElement',
  'WithElement',
]);

/** Statements whose parts the parser prints in full. */
const STATEMENTS = new Set(['SelectWithUnionQuery', 'SelectIntersectExceptQuery', 'DescribeQuery']);
/** Statements about one table, which is named by identifiers. */
const ABOUT_TABLE = new Set(['ShowCreateTableQuery', 'ShowCreateViewQuery', 'ExistsTableQuery', 'ExistsViewQuery']);
/**
 * The parser does not print the parts of these statements, so only these exact forms are allowed.
 * Backslashes are excluded, since one could end what looks like a string.
 */
const SHOW =
  /^\s*SHOW\s+(FULL\s+)?(TABLES|DATABASES|COLUMNS|FIELDS)(\s+(FROM|IN)\s+`?\w+`?(\.`?\w+`?)?){0,2}(\s+LIKE\s+'[\w% .-]*')?(\s+LIMIT\s+\d+)?(\s+FORMAT\s+\w+)?\s*(;\s*)?$/i;
/** Other forms of EXPLAIN reveal numbers of parts and granules, over all organizations. */
const EXPLAINS = /^EXPLAIN (AST|SYNTAX|QUERY TREE)$/;

/**
 * Tables of system that describe the language and what the analyst may read; the engine shows
 * granted rows only.
 */
const SYSTEM_TABLES = new Set(
  (
    'one tables columns databases functions table_functions formats settings data_type_families time_zones collations keywords ' +
    'aggregate_function_combinators table_engines current_roles enabled_roles completions'
  ).split(' '),
);

/**
 * Formats that read no schema and write only to the caller. Formats with progress
 * (JSONEachRowWithProgress and its variants) are excluded: they report how many rows the engine
 * read, which counts rows of other organizations in the same granules.
 */
const FORMATS =
  /^(Tab(Separated|bed)\w*|TSV\w*|CSV(WithNames(AndTypes)?)?|JSON(Strings|Columns(WithMetadata)?|Compact(Strings|Columns)?)?|JSON(L|Lines|ObjectEachRow)|JSON((Strings)?EachRow|Compact(Strings)?EachRow(WithNames(AndTypes)?)?)|NDJSON|Pretty\w*|Values|Vertical|XML|Markdown|Null|Native|RowBinary\w*|Parquet|Arrow|ArrowStream|ORC|Avro|MsgPack|BSONEachRow|SQLInsert|ODBCDriver2)$/;

/** A node of the parser's tree. */
export interface Node {
  depth: number;
  kind: string;
  /** The rest of the node's line, after its kind. */
  rest: string;
  parent: Node | null;
  children: Node[];
}

export const isAllowedFormat = (name: string): boolean => FORMATS.test(name);

/**
 * Returns why a query may not run, or null.
 *
 * @param query the query itself
 * @param ast its tree from EXPLAIN AST, as TabSeparatedRaw
 */
export function refusalOf(query: string, ast: string, options: CheckOptions): Refusal | null {
  const nodes = readNodes(ast);
  const [root] = nodes;
  if (root === undefined) return denied('this is not a query');
  let statement = root;
  if (root.kind === 'Explain') {
    if (!EXPLAINS.test(plain(root.rest))) return denied('EXPLAIN takes AST, SYNTAX or QUERY TREE, without settings');
    statement = nodes[1] ?? root;
    if (statement.kind === 'ExpressionList' || statement.kind === 'Set') return denied('EXPLAIN takes no settings');
  }
  if (statement.kind === 'ShowTables' || statement.kind === 'ShowColumns')
    return SHOW.test(query) ? null : denied('SHOW takes TABLES, DATABASES or COLUMNS, with FROM, LIKE and LIMIT');
  if (ABOUT_TABLE.has(statement.kind)) return statementAboutTable(nodes);
  if (!STATEMENTS.has(statement.kind))
    return denied('only SELECT, EXPLAIN AST, SYNTAX and QUERY TREE, DESCRIBE, SHOW and EXISTS may run');
  for (const node of nodes) {
    if (node === root || node === statement) continue;
    const refused = refusalOfNode(node, statement, options);
    if (refused !== null) return refused;
  }
  return null;
}

function statementAboutTable(nodes: readonly Node[]): Refusal | null {
  return nodes.slice(1).every(({ kind }) => kind === 'Identifier') ? null : denied('takes only the name of a view');
}

function refusalOfNode(node: Node, statement: Node, { database, isFunction }: CheckOptions): Refusal | null {
  const { kind, rest, parent } = node;
  if (kind === 'Set')
    return {
      code: 164,
      type: 'READONLY',
      message: 'A query takes no SETTINGS here: settings that are allowed go into the URL',
    };
  if (kind === 'ColumnsApplyTransformer') return denied('APPLY is not allowed: name the function for each column');
  if (!NODES.has(kind)) return denied(`${kind} is not allowed`);
  const name = firstWord(rest);
  if (kind === 'Function') {
    const ofTable = parent?.kind === 'TableExpression';
    if (ofTable ? isAllowedTableFunction(name) : isAllowedFunction(name)) {
      const problem = problemOfNames(name, node);
      return problem === null ? null : denied(problem);
    }
    return denied(ofTable ? `table function ${name} cannot be called` : `function ${name}: ${whyLeftOut(name)}`);
  }
  if (kind === 'TableIdentifier') return isAllowedTable(name, database) ? null : denied(`table ${name} cannot be read`);
  if (kind !== 'Identifier' && kind !== 'Literal') return null;
  if (parent === statement || parent?.kind === 'SelectWithUnionQuery') {
    if (kind === 'Literal') return denied('INTO OUTFILE is not allowed');
    return isAllowedFormat(name) ? null : denied(`format ${name} is not allowed`);
  }
  // A function can be passed to another one by its bare name: arrayMap(file, …).
  if (kind === 'Identifier' && isFunction(name.toLowerCase()) && !isAllowedFunction(name))
    return denied(
      `${name} is the name of a function: ${whyLeftOut(name)}. A column or alias of this name needs its table before it`,
    );
  return null;
}

/**
 * Returns whether a table may be read: a view by its own name, a name from WITH, or one of
 * SYSTEM_TABLES.
 */
function isAllowedTable(name: string, database: string): boolean {
  const dot = name.indexOf('.');
  if (dot === -1) return true;
  const [of, table] = [name.slice(0, dot).replaceAll('`', ''), name.slice(dot + 1).replaceAll('`', '')];
  if (of === database) return true;
  return of === 'system' && SYSTEM_TABLES.has(table);
}

/**
 * Reads one node per line. An alias with line breaks yields unknown nodes and so a rejection; it
 * can never hide a node.
 */
function readNodes(ast: string): Node[] {
  const nodes: Node[] = [];
  const open: Node[] = [];
  for (const line of ast.split('\n')) {
    if (line === '') continue;
    const depth = line.length - line.trimStart().length;
    const text = line.slice(depth);
    const space = text.indexOf(' ');
    const [kind, rest] = space === -1 ? [text, ''] : [text.slice(0, space), text.slice(space + 1)];
    while ((open.at(-1)?.depth ?? -1) >= depth) open.pop();
    const node: Node = { depth, kind, rest, parent: open.at(-1) ?? null, children: [] };
    node.parent?.children.push(node);
    nodes.push(node);
    open.push(node);
  }
  return nodes;
}

/** Returns the name at the beginning of a node; its alias and the number of its parts follow. */
const firstWord = (rest: string): string => rest.split(' ', 1)[0] ?? '';
const plain = (rest: string): string => rest.replace(/ \(children \d+\)$/, '');
const denied = (message: string): Refusal => ({
  code: 497,
  type: 'ACCESS_DENIED',
  message: `Not for analysts: ${message}`,
});
