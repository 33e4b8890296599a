import { describe, expect, it } from 'vitest';
import { analystStatements } from '../../../sql/analysts/analyst.ts';
import { readScripts, rewriteForCluster, splitStatements } from '../../../sql/client/migrate.ts';

describe('the rewrite for a cluster', () => {
  const { migrations, views } = readScripts();
  const statements = [...migrations, ...views].flatMap(({ sql }) => splitStatements(sql));

  it('the rewrite for a cluster gives every table of the project a replicated engine and changes nothing else', () => {
    // A Join table is in the memory of one server.
    const tables = statements.filter((sql) => sql.startsWith('CREATE TABLE') && !sql.includes('ENGINE = Join'));
    expect(tables.length).toBeGreaterThan(5);
    for (const sql of tables) {
      const rewritten = rewriteForCluster(sql);
      expect(rewritten).toMatch(/ENGINE = Replicated\w*MergeTree/);
      expect(rewritten.replace('ENGINE = Replicated', 'ENGINE = ')).toBe(sql);
    }
  });

  it('the rewrite for a cluster leaves statements without an engine as they are', () => {
    for (const sql of statements.filter((text) => !text.startsWith('CREATE TABLE')))
      expect(rewriteForCluster(sql)).toBe(sql);
  });

  it('the rewrite for a cluster keeps the parameters of an engine', () => {
    expect(rewriteForCluster('x ENGINE = VersionedCollapsingMergeTree(sign, version) y')).toBe(
      'x ENGINE = ReplicatedVersionedCollapsingMergeTree(sign, version) y',
    );
    expect(rewriteForCluster('x ENGINE=MergeTree ORDER BY a')).toBe('x ENGINE = ReplicatedMergeTree ORDER BY a');
  });

  it('the rewrite for a cluster rewrites nothing twice', () => {
    const once = rewriteForCluster('ENGINE = MergeTree');
    expect(rewriteForCluster(once)).toBe(once);
  });
});

describe('statements of a script', () => {
  it('statements of a script end with a semicolon at the end of a line and omit comments', () => {
    expect(
      splitStatements(
        "-- why; because\nCREATE TABLE a (x String DEFAULT ';');\n\n  -- more\nALTER TABLE a\n  ADD INDEX y;\n",
      ),
    ).toEqual(["CREATE TABLE a (x String DEFAULT ';')", 'ALTER TABLE a\n  ADD INDEX y']);
  });
});

describe('the analyst user', () => {
  it('the analyst user gets the hash of the password and grants on the views only', () => {
    const statements = analystStatements('millrace', 'correct horse');
    expect(statements.join('\n')).not.toContain('correct horse');
    const grants = statements.filter((sql) => sql.startsWith('GRANT'));
    expect(grants).toHaveLength(readScripts().views.length);
    for (const grant of grants) expect(grant).toMatch(/^GRANT SELECT ON `millrace`\.`analyst_[a-z_]+` TO analyst$/);
    expect(statements[0]).toContain('readonly = 1');
  });

  it('the analyst user is created on every replica of a cluster', () => {
    for (const sql of analystStatements('millrace', 'p', 'main')) expect(sql).toContain("ON CLUSTER 'main'");
  });
});
