import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createClickHouse, type ClickHouse } from '../../../sql/client/client.ts';
import { migrate, readScripts } from '../../../sql/client/migrate.ts';
import { createTestDatabase, type TestDatabase } from '../../support/clickhouse.ts';

let database: TestDatabase;
let client: ClickHouse;

beforeAll(async () => {
  database = await createTestDatabase({ empty: true });
  await database.drop();
  client = createClickHouse({ url: database.url });
});

afterAll(async () => {
  await client.close();
  await database.drop();
});

describe('migrations', () => {
  it('migrations create the database in order, also when two processes start at once; a second run changes nothing', async () => {
    const names = readScripts().migrations.map(({ name }) => name);
    const other = createClickHouse({ url: database.url });
    const [mine, theirs] = await Promise.all([migrate(client, {}), migrate(other, {})]);
    await other.close();
    expect([...new Set([...mine, ...theirs])].sort()).toEqual(names);
    expect(await migrate(client, {})).toEqual([]);
    const views = await client.rows<{ name: string }>({
      name: 'views',
      sql: "SELECT name FROM system.tables WHERE database = currentDatabase() AND engine = 'View' ORDER BY name",
      timeoutMs: 5000,
    });
    expect(views.map(({ name }) => `${name}.sql`)).toEqual(readScripts().views.map(({ name }) => name));
  });

  it('migrations create the same database that all other tests use', async () => {
    const copy = await createTestDatabase();
    const tables = async (of: TestDatabase): Promise<string[]> => {
      const made = await of.run(
        'SELECT create_table_query FROM system.tables WHERE database = currentDatabase() ORDER BY name FORMAT TSVRaw',
      );
      return made.trimEnd().replaceAll(of.database, 'the_database').split('\n');
    };
    const [copied, migrated] = await Promise.all([tables(copy), tables(database)]);
    expect(migrated.length).toBeGreaterThan(readScripts().views.length);
    expect(copied).toEqual(migrated);
    const its = createClickHouse({ url: copy.url });
    expect(await migrate(its, {})).toEqual([]);
    await its.close();
    await copy.drop();
  });

  it('an applied migration that was edited is rejected', async () => {
    const { migrations, views } = readScripts();
    const edited = migrations.map((script, index) =>
      index === 1 ? { ...script, sql: `${script.sql}\n-- a late idea\n` } : script,
    );
    await expect(migrate(client, { scripts: { migrations: edited, views } })).rejects.toThrow(
      `${migrations[1]?.name ?? ''} was edited after it was applied`,
    );
  });

  it('two migrations with one number are rejected', async () => {
    const { migrations, views } = readScripts();
    const twice = migrations.flatMap((script, index) =>
      index === 1 ? [script, { ...script, name: `${script.name.slice(0, 4)}_repeat_it.sql` }] : [script],
    );
    await expect(migrate(client, { scripts: { migrations: twice, views } })).rejects.toThrow('a number of its own');
  });

  it('a changed view is replaced', async () => {
    const scripts = {
      migrations: readScripts().migrations,
      views: [
        {
          name: 'analyst_probe.sql',
          sql: "CREATE OR REPLACE VIEW analyst_probe (a UInt8 COMMENT 'one') AS SELECT 1 AS a;",
        },
      ],
    };
    const read = async () =>
      (
        await client.rows<Record<string, number>>({
          name: 'probe',
          sql: 'SELECT * FROM analyst_probe',
          timeoutMs: 5000,
        })
      )[0];
    await migrate(client, { scripts });
    expect(await read()).toEqual({ a: 1 });
    await migrate(client, {
      scripts: {
        ...scripts,
        views: [
          {
            name: 'analyst_probe.sql',
            sql: "CREATE OR REPLACE VIEW analyst_probe (b UInt8 COMMENT 'two') AS SELECT 2 AS b;",
          },
        ],
      },
    });
    expect(await read()).toEqual({ b: 2 });
  });

  it('a process of an older version keeps the views of a newer one that has migrated the database', async () => {
    const { migrations } = readScripts();
    const probe = (column: string) => ({
      name: 'analyst_probe_of_versions.sql',
      sql: `CREATE OR REPLACE VIEW analyst_probe_of_versions (${column} UInt8 COMMENT 'one') AS SELECT 1 AS ${column};`,
    });
    const newer = {
      migrations: [...migrations, { name: '9999_change_nothing.sql', sql: 'SELECT 1;' }],
      views: [probe('newer')],
    };
    await migrate(client, { scripts: newer });
    await migrate(client, { scripts: { migrations, views: [probe('older')] } });
    const read = { name: 'probe', sql: 'SELECT * FROM analyst_probe_of_versions', timeoutMs: 5000 };
    expect(await client.rows(read)).toEqual([{ newer: 1 }]);
    await client.execute({
      name: 'forget',
      sql: "ALTER TABLE schema_migrations DELETE WHERE name = '9999_change_nothing.sql' SETTINGS mutations_sync = 1",
      timeoutMs: 5000,
    });
  });

  it('every column of every view has a comment', async () => {
    const bare = await client.rows({
      name: 'bare_columns',
      sql: "SELECT table, name FROM system.columns WHERE database = currentDatabase() AND startsWith(table, 'analyst_') AND comment = ''",
      timeoutMs: 5000,
    });
    expect(bare).toEqual([]);
  });
});
