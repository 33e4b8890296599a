// Whether a query of an org's analyst may run, from what the engine's own parser made of it (EXPLAIN AST): statements, functions, tables
// and formats by lists of what is allowed. The first of two fences: grants and row policies in the engine are the other.
// Pure: in comes the parser's text, out comes why not.
import { isAllowedFunction, isAllowedTableFunction, whyLeftOut } from './functions.ts';
import { problemOfNames } from './names.ts';

/** Why a query is refused, as ClickHouse would say it. */
export interface Refusal {
  code: number;
  type: string;
  message: string;
}

export interface CheckOptions {
  /** Database of the views. */
  database: string;
  /** Whether the engine has a function of this name, in lower case. */
  isFunction: (name: string) => boolean;
}

/** Parts of a SELECT. What the parser knows beyond them (APPLY, whose function it does not write down; settings) is refused. */
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

/** Statements whose parts the parser writes out in full. */
const STATEMENTS = new Set(['SelectWithUnionQuery', 'SelectIntersectExceptQuery', 'DescribeQuery']);
/** Statements about one table, named by identifiers. */
const ABOUT_TABLE = new Set(['ShowCreateTableQuery', 'ShowCreateViewQuery', 'ExistsTableQuery', 'ExistsViewQuery']);
/** Of these the parser does not write the parts: only these very forms are taken. A backslash could end what looks like a text. */
const SHOW =
  /^\s*SHOW\s+(FULL\s+)?(TABLES|DATABASES|COLUMNS|FIELDS)(\s+(FROM|IN)\s+`?\w+`?(\.`?\w+`?)?){0,2}(\s+LIKE\s+'[\w% .-]*')?(\s+LIMIT\s+\d+)?(\s+FORMAT\s+\w+)?\s*(;\s*)?$/i;
/** Others tell how many parts and granules there are, of every org together. */
const EXPLAINS = /^EXPLAIN (AST|SYNTAX|QUERY TREE)$/;

/** Of system, what describes the language and what the analyst may see; the engine shows of it only what is granted. */
const SYSTEM_TABLES = new Set(
  (
    'one tables columns databases functions table_functions formats settings data_type_families time_zones collations keywords ' +
    'aggregate_function_combinators table_engines current_roles enabled_roles completions'
  ).split(' '),
);

/**
 * Formats that read no schema and write to nobody but the caller. Formats with progress (JSONEachRowWithProgress and its variants) are left
 * out: they report how many rows the engine read, which counts rows of other organizations in the same granules.
 */
const FORMATS =
  /^(Tab(Separated|bed)\w*|TSV\w*|CSV(WithNames(AndTypes)?)?|JSON(Strings|Columns(WithMetadata)?|Compact(Strings|Columns)?)?|JSON(L|Lines|ObjectEachRow)|JSON((Strings)?EachRow|Compact(Strings)?EachRow(WithNames(AndTypes)?)?)|NDJSON|Pretty\w*|Values|Vertical|XML|Markdown|Null|Native|RowBinary\w*|Parquet|Arrow|ArrowStream|ORC|Avro|MsgPack|BSONEachRow|SQLInsert|ODBCDriver2)$/;

/** A node of the parser's tree. */
export interface Node {
  depth: number;
  kind: string;
  /** What follows the kind on the node's line. */
  rest: string;
  parent: Node | null;
  children: Node[];
}

export const isAllowedFormat = (name: string): boolean => FORMATS.test(name);

/** Null where it may run. @param query the query itself @param ast what EXPLAIN AST says of it, as TabSeparatedRaw */
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
  return nodes.slice(1).every(({ kind }) => kind === 'Identifier')
    ? null
    : denied('only the name of a view may follow');
}

function refusalOfNode(node: Node, statement: Node, { database, isFunction }: CheckOptions): Refusal | null {
  const { kind, rest, parent } = node;
  if (kind === 'Set')
    return {
      code: 164,
      type: 'READONLY',
      message: 'A query takes no SETTINGS here: what may be set goes into the URL',
    };
  if (kind === 'ColumnsApplyTransformer')
    return denied('APPLY is not there for analysts: name the function for each column');
  if (!NODES.has(kind)) return denied(`${kind} is not there for analysts`);
  const name = firstWord(rest);
  if (kind === 'Function') {
    const ofTable = parent?.kind === 'TableExpression';
    if (ofTable ? isAllowedTableFunction(name) : isAllowedFunction(name)) {
      const problem = problemOfNames(name, node);
      return problem === null ? null : denied(problem);
    }
    return denied(
      ofTable ? `table function ${name} is not there for analysts` : `function ${name}: ${whyLeftOut(name)}`,
    );
  }
  if (kind === 'TableIdentifier')
    return isAllowedTable(name, database) ? null : denied(`there is no ${name} for analysts`);
  if (kind !== 'Identifier' && kind !== 'Literal') return null;
  if (parent === statement || parent?.kind === 'SelectWithUnionQuery') {
    if (kind === 'Literal') return denied('INTO OUTFILE is not there for analysts');
    return isAllowedFormat(name) ? null : denied(`format ${name} is not there for analysts`);
  }
  // A function can be handed to another by its bare name: arrayMap(file, …).
  if (kind === 'Identifier' && isFunction(name.toLowerCase()) && !isAllowedFunction(name))
    return denied(
      `${name} is the name of a function: ${whyLeftOut(name)}. A column or alias of this name needs its table before it`,
    );
  return null;
}

/** Views by their own name (or a WITH by its), and a few tables that describe. */
function isAllowedTable(name: string, database: string): boolean {
  const dot = name.indexOf('.');
  if (dot === -1) return true;
  const [of, table] = [name.slice(0, dot).replaceAll('`', ''), name.slice(dot + 1).replaceAll('`', '')];
  if (of === database) return true;
  return of === 'system' && SYSTEM_TABLES.has(table);
}

/** One node a line; an alias may hold line breaks, which makes nodes that nobody knows and so a refusal, never one node less. */
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

/** The name that a node begins with: what follows is its alias and the number of its parts. */
const firstWord = (rest: string): string => rest.split(' ', 1)[0] ?? '';
const plain = (rest: string): string => rest.replace(/ \(children \d+\)$/, '');
const denied = (message: string): Refusal => ({
  code: 497,
  type: 'ACCESS_DENIED',
  message: `Not for analysts: ${message}`,
});
