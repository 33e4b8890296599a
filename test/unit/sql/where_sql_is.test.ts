// All SQL of the product is in sql/: what the service asks of the store is found, checked and
// changed in one place.
import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import ts from 'typescript';
import { describe, expect, it } from 'vitest';

const ROOT = path.join(import.meta.dirname, '../../..');

/** Statements that begin a string, in the capitals in which the project writes SQL. */
const STATEMENT =
  /^\s*(SELECT\s|INSERT INTO\s|DELETE FROM\s|WITH\s[^]*\bSELECT\b|(ALTER|OPTIMIZE|RENAME|TRUNCATE|ATTACH|DETACH) TABLE\s|(CREATE|DROP) (OR REPLACE )?(TEMPORARY )?(TABLE|DATABASE|VIEW|USER|ROLE|ROW POLICY|MATERIALIZED VIEW)\s|KILL (QUERY|MUTATION)\s|SYSTEM [A-Z]+\s[A-Z]|GRANT\s|REVOKE\s|EXPLAIN [A-Z]+\s|SHOW (GRANTS|TABLES|CREATE)\b|(BACKUP|RESTORE) (DATABASE|TABLE)\s)/;
/** A file without any of these words is not parsed. */
const WORDS =
  /\b(SELECT|INSERT|DELETE|ALTER|OPTIMIZE|RENAME|TRUNCATE|ATTACH|DETACH|CREATE|DROP|KILL|SYSTEM|GRANT|REVOKE|EXPLAIN|SHOW|BACKUP|RESTORE|FROM)\b/;
/** A statement, or a subquery, further on in a string. */
const QUERY = /\bSELECT\s[^]+\sFROM\s|\sFROM\s+[a-z_.]+\s[^]*\bWHERE\s/;

/**
 * The launcher of the embedded engine writes the engine's start and stop script. It is confined to
 * files of its own folder and of the engine, so it cannot import sql/.
 */
const EXCEPTIONS: Readonly<Record<string, readonly string[]>> = {
  'ops/launch/clickhouse/launcher.ts': [
    'SYSTEM START LISTEN TCP;\n',
    'SYSTEM START LISTEN HTTP;\n',
    'SYSTEM STOP LISTEN QUERIES ALL;\n',
  ],
};

/** Returns the strings of a source file that contain SQL. */
function sqlIn(file: string, code: string): string[] {
  if (!WORDS.test(code)) return [];
  const found: string[] = [];
  const visit = (node: ts.Node): void => {
    const text = ts.isTemplateExpression(node)
      ? [node.head, ...node.templateSpans.map(({ literal }) => literal)].map((part) => part.text).join('x')
      : ts.isStringLiteralLike(node)
        ? node.text
        : '';
    if (STATEMENT.test(text) || QUERY.test(text)) found.push(text);
    ts.forEachChild(node, visit);
  };
  visit(ts.createSourceFile(file, code, ts.ScriptTarget.Latest));
  return found;
}

describe('the search for SQL', () => {
  it.each([
    "client.rows({ sql: 'SELECT 1' })",
    'const sql = `SELECT ${columns} FROM traces WHERE ${where}`;',
    'const sql = `\n  INSERT INTO traces (a) FORMAT JSONEachRow`;',
    'const sql = `WITH (SELECT 1) AS one SELECT one`;',
    'const due = `key IN (SELECT key FROM ${table} FINAL WHERE ${where})`;',
    "run('ALTER TABLE spans DROP PART {name:String}');",
    "run('OPTIMIZE TABLE spans FINAL');",
    "run('KILL QUERY WHERE query_id = {id:String} SYNC');",
    "run('SYSTEM FLUSH LOGS');",
    "const prefix = 'EXPLAIN AST ';",
  ])('finds %s', (code) => {
    expect(sqlIn('example.ts', code)).toHaveLength(1);
  });

  it.each([
    '// SELECT 1 FROM traces WHERE a',
    "const detail = 'EXPLAIN takes AST, SYNTAX or QUERY TREE, without settings';",
    "const grant = 'the rows of a table where a policy of the organization applies';",
    "const help = 'Select a trace from the list';",
  ])('passes %s', (code) => {
    expect(sqlIn('example.ts', code)).toEqual([]);
  });
});

it('no file of the product outside sql/ contains a SQL statement', () => {
  const files = globSync('{api,ops,pipeline,schemas}/**/*.{ts,mjs}', { cwd: ROOT });
  expect(files.length).toBeGreaterThan(300);
  const found = files.flatMap((file) => {
    const allowed = EXCEPTIONS[file] ?? [];
    return sqlIn(file, readFileSync(path.join(ROOT, file), 'utf8'))
      .filter((text) => !allowed.includes(text))
      .map((text) => `${file}: ${text.slice(0, 80)}`);
  });
  expect(found).toEqual([]);
});
