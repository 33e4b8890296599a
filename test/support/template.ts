// What a test's database is made from. A migration takes the engine a second of work; over a hundred test files it is done once, and its
// outcome is made again for each of them (test/integration/sql/migrate.test.ts compares the two).
// Not by BACKUP and RESTORE … AS, which are shorter: 26.7 loses the aliases of tables in the queries of views on the way.
import { createClickHouse } from '../../sql/client/client.ts';
import { migrate } from '../../sql/client/migrate.ts';

const TEMPLATE = 'test_template';
const TIMEOUT_MS = 30_000;

/** Stands for the name of the database in the statements. */
export const DATABASE_PLACE = '{the_database}';

/** Migrates a database as the service does; gives the statements that make its like. @param engineUrl as app, with any database */
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
