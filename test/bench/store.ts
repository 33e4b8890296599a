// The benchmark's own look into ClickHouse: what has landed, without going through the service.

/** Runs a statement; gives the answer's text. */
export type RunSql = (sql: string, settings?: Record<string, string>) => Promise<string>;

/** @throws Error with ClickHouse's reason */
export function sqlRunner(clickhouseUrl: string): RunSql {
  const { protocol, host, username, password, pathname } = new URL(clickhouseUrl);
  const authorization = `Basic ${Buffer.from(`${decodeURIComponent(username)}:${decodeURIComponent(password)}`).toString('base64')}`;
  return async (sql, settings = {}) => {
    const query = new URLSearchParams({ database: pathname.slice(1), ...settings });
    const response = await fetch(`${protocol}//${host}/?${query.toString()}`, { method: 'POST', body: sql, headers: { authorization } });
    const text = await response.text();
    if (!response.ok) throw new Error(`ClickHouse: ${text.slice(0, 400)}`);
    return text.trim();
  };
}

/** Rows that can be queried, and texts that cannot be searched yet. Counts of whole tables: no data is read. */
export async function landedRows(runSql: RunSql): Promise<{ spans: number; waiting: number }> {
  const [spans = '0', waiting = '0'] = (
    await runSql('SELECT (SELECT count() FROM spans), (SELECT count() FROM span_texts_recent) FORMAT TSV')
  ).split('\t');
  return { spans: Number(spans), waiting: Number(waiting) };
}
