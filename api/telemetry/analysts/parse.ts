// Has the engine's parser take a query apart, and checks what came of it.
import { EXPLAIN_AST } from '../../../sql/analysts/escape_attempts.ts';
import type { Login } from './request.ts';
import { refusalOf, type Refusal } from './check.ts';
import type { AnalystEngine } from './engine.ts';

/** The parser's answer, without escapes of a format of its own. */
const FORMAT = 'TabSeparatedRaw';

export interface ParseDeps {
  engine: AnalystEngine;
  /** Every function that the engine has, in lower case. */
  functions: ReadonlySet<string>;
}

/**
 * Resolves with the refusal of a query, or null if it may run. The parser executes nothing; it gets
 * the query's own parameters, so that their values are checked too.
 *
 * @throws Error when the engine is unavailable
 */
export async function checkQuery(
  { engine, functions }: ParseDeps,
  query: string,
  { params, user, signal }: { params?: URLSearchParams; signal: AbortSignal } & Pick<Login, 'user'>,
): Promise<Refusal | null> {
  const settings = new URLSearchParams({ database: engine.database, default_format: FORMAT, max_execution_time: '10' });
  for (const [name, value] of params ?? []) if (name.startsWith('param_')) settings.set(name, value);
  const { status, code, format, text } = await engine.read({
    org_id: null,
    user,
    query: EXPLAIN_AST + query,
    params: settings,
    signal,
  });
  if (status !== 200 || format !== FORMAT) return parserRefusal(code, text);
  return refusalOf(query, text, { database: engine.database, isFunction: (name) => functions.has(name) });
}

/** Returns a syntax error in the engine's own words, with positions in the query as it was sent. */
function parserRefusal(code: number | null, text: string): Refusal {
  const found = /^Code: \d+\. DB::Exception: (.*) \(([A-Z0-9_]+)\) \(version [^)]*\)\s*$/s.exec(text);
  if (code === null || found === null) return { code: 62, type: 'SYNTAX_ERROR', message: 'The query cannot be parsed' };
  const message = (found[1] ?? '').replace(
    /(failed at position |\(line 1, col )(\d+)/g,
    (_, before: string, at: string) => before + String(Number(at) - EXPLAIN_AST.length),
  );
  return { code, type: found[2] ?? 'SYNTAX_ERROR', message };
}
