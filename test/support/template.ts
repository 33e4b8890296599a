// The template of test databases. A migration costs the engine a second of work, so it runs once
// for over a hundred test files, and each of them replays its result
// (test/integration/sql/migrate.test.ts compares the two).
//
// BACKUP and RESTORE … AS would be shorter, but ClickHouse 26.7 loses the aliases of tables in the
// queries of restored views.
import { createClickHouse } from '../../sql/client/client.ts';
import { migrate } from '../../sql/client/migrate.ts';

const TEMPLATE = 'test_template';
const TIMEOUT_MS = 30_000;

/** Placeholder for the name of the database in the statements. */
export const DATABASE_PLACE = '{the_database}';

/**
 * Migrates a database as the service does and returns the statements that create an identical one.
 * @param engineUrl as app, with any database
 */
export async function makeTemplate(engineUrl: string): Promise<string[]> {
  const url = new URL(engineUrl);
  url.pathname = `/${TEMPLATE}`;
  const client = createClickHouse({ url: url.href });
  await migrate(client, {});
  const tables = await client.rows<{ statement: string }>({
    name: 'template',
    sql: `SELECT create_table_query AS statement FROM system.tables WHERE database = currentDatabase()
      ORDER BY indexOf(['View', 'MaterializedView'], engine) > 0, name`,
    timeoutMs: TIMEOUT_MS,
  });
  await client.close();
  return [
    ...tables.map(({ statement }) => statement.replaceAll(TEMPLATE, DATABASE_PLACE)),
    `INSERT INTO ${DATABASE_PLACE}.schema_migrations SELECT * FROM ${TEMPLATE}.schema_migrations`,
  ];
}
