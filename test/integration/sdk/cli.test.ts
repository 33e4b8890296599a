// The command line from its tarball, as npm installs it, against a real service: what it prints on a
// terminal and for programs, and the exit codes that scripts rely on.
import { once } from 'node:events';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { eventually } from '../../support/wait.ts';
import { makeKey } from '../a_tenant.ts';
import { api, type Data, millrace, modelCall, newFolder, onTerminal, startMillrace, tenant } from './a_cli.ts';

describe('exit codes', () => {
  test.each([
    [2, ['no-such-command']],
    [2, ['traces']],
    [2, ['traces', 'list', '--nonsense']],
    [2, ['traces', 'list', '--since', 'yesterday']],
    [2, ['traces', 'list', '--limit', '0']],
    [2, ['costs', '--output', 'xml']],
    [2, ['traces', 'get']],
    [2, ['import', '/no/such/file']],
    [2, ['evals', 'run', '--judge', 'judge_1']],
    [3, ['traces', 'get', 'no-such-trace']],
    [3, ['traces', 'list', '--filter', 'nonsense=1']],
    [3, ['prompts', 'get', 'no-such-prompt']],
    [3, ['sql', 'SELEC']],
    [0, ['--version']],
    [0, ['traces', '--help']],
    [0, ['traces', 'list', '--help']],
  ])('%s for millrace %j', async (code, args) => {
    const run = await millrace(args);
    expect([run.code, run.err]).toEqual([code, run.err]);
    expect(run.err === '').toBe(code === 0);
  });

  test('3 for a key that the service does not know, 4 for a service that does not answer', async () => {
    expect(await millrace(['costs'], { MILLRACE_API_KEY: 'sk_svc_unknown' })).toMatchObject({ code: 3, out: '' });
    const away = await millrace(['costs', '--url', 'http://127.0.0.1:9']);
    expect([away.code, away.out, away.err]).toEqual([4, '', expect.stringContaining('does not answer')]);
  });
});

test('doctor sends a span and reads it', async () => {
  const { code, records } = await millrace(['doctor']);
  expect(records.map(({ check, status }) => [check, status])).toEqual([
    ['address', 'ok'],
    ['clock', 'ok'],
    ['send', 'ok'],
    ['read', 'ok'],
  ]);
  expect(code).toBe(0);
  const { json } = await tenant.get('/v1/traces?tags=millrace-doctor');
  expect(json?.['data']).toHaveLength(1);
});

test('doctor says that a key may not read, and refuses a key that may not send', async () => {
  const keyOf = async (scope: string) => (await makeKey(api, tenant.org, [scope]))['X-Org-Api-Key'] ?? '';
  const sender = await millrace(['doctor'], { MILLRACE_API_KEY: await keyOf('ingest:write') });
  expect([sender.code, sender.records.at(-1)]).toEqual([
    0,
    expect.objectContaining({ check: 'read', status: 'skipped' }),
  ]);
  const reader = await millrace(['doctor', '-o', 'table'], { MILLRACE_API_KEY: await keyOf('traces:read') });
  expect([reader.code, reader.out, reader.err]).toEqual([
    3,
    expect.stringContaining('address'),
    expect.stringContaining('ingest:write'),
  ]);
});

describe('traces', () => {
  const sendTwo = async (): Promise<void> => {
    await tenant.ingest(
      'chatcompletion',
      modelCall({ trace_id: 'run-1', tags: ['a'], attributes: { agent_id: 'bot' } }),
    );
    const step = { trace_id: 'run-2', name: 'step \u001b[31mred', outcome: 'error', duration_ms: 5, span_id: 'outer' };
    await tenant.ingest('custom', {
      events: [step, { ...step, name: 'inner', span_id: 'in', parent_span_id: 'outer' }],
    });
    await tenant.searchable(3);
  };

  test('are listed with every filter of the API, as tables and as lines', async () => {
    await sendTwo();
    const ids = async (...args: string[]) =>
      (await millrace(['traces', 'list', ...args])).records.map((one) => one['trace_id']);
    expect((await ids()).sort()).toEqual(['run-1', 'run-2']);
    expect(await ids('--outcome', 'error', '--since', '1h')).toEqual(['run-2']);
    expect(await ids('--tag', 'a', '--agent', 'bot', '--min-cost', '0.000001')).toEqual(['run-1']);
    expect(await ids('--filter', 'model=gpt-4o-mini')).toEqual(['run-1']);
    expect(await ids('--search', 'paris')).toEqual(['run-1']);
    expect(await ids('--sort', 'tokens', '--since', '1h', '-n', '1')).toEqual(['run-1']);
    const table = await millrace(['traces', 'list', '-o', 'table']);
    expect(table.out.split('\n')[0]).toMatch(/^STARTED +TRACE +ROOT .* COST +SPANS$/);
    expect(table.out).toContain('step  [31mred');
    // Texts of traces must not steer the terminal.
    expect(table.out).not.toContain('\u001b');
  });

  test('one is shown as a tree, or as lines with its texts', async () => {
    await sendTwo();
    const tree = await millrace(['traces', 'get', 'run-2', '-o', 'table']);
    expect(tree.out).toMatch(/\nstep .*\n {2}inner /);
    const { records } = await millrace(['traces', 'get', 'run-1']);
    expect(records).toMatchObject([{ model: 'gpt-4o-mini', response: 'Paris it is' }]);
    const { records: bare } = await millrace(['traces', 'get', 'run-1', '--no-texts']);
    expect(bare[0]).not.toHaveProperty('response');
  });

  test.skipIf(process.platform !== 'linux')(
    'are shown on a terminal as a table in colour, with whole ids and as many columns as fit',
    async () => {
      await sendTwo();
      const [titles, failed] = (await onTerminal(['traces', 'list', '--outcome', 'error'])).split('\n');
      expect(titles?.replaceAll(/\u001b\[\d*m/g, '')).toMatch(/^STARTED +TRACE +ROOT +AGENT +OUTCOME +DURATION +/);
      expect(failed).toMatch(/^\d\d-\d\d \d\d:\d\d:\d\d {2}run-2 {2}step .*\u001b\[31merror/);
      expect((await onTerminal(['traces', 'get', 'run-1'])).split('\n')[1]).toContain('run-1');
    },
  );

  test('are found by their texts', async () => {
    await sendTwo();
    const { records } = await millrace(['traces', 'search', 'capital', 'paris']);
    expect(records).toMatchObject([{ trace_id: 'run-1', outcome: 'success' }]);
    expect((await millrace(['traces', 'search', 'nowhere', '-o', 'table'])).err).toBe('No span matches.\n');
  });

  test('more than a page are listed once each', async () => {
    const events = Array.from({ length: 230 }, (_, at) => ({
      name: 'step',
      outcome: 'success',
      trace_id: `many-${at}`,
    }));
    await tenant.ingest('custom', { events });
    await tenant.landed(230);
    const { records } = await millrace(['traces', 'list', '-n', '1000']);
    expect(new Set(records.map((one) => one['trace_id'])).size).toBe(230);
    expect(records).toHaveLength(230);
    expect((await millrace(['traces', 'list', '-n', '210'])).records).toHaveLength(210);
  });

  test('are followed as they become complete, until the limit', async () => {
    const child = startMillrace(['traces', 'tail', '-n', '2', '--filter', 'tags=live']);
    let out = '';
    child.stdout?.on('data', (chunk: Buffer) => (out += chunk.toString()));
    const ended = once(child, 'exit');
    // The stream reports from its opening on, so events are sent until the command has seen two.
    let at = 0;
    await eventually(
      async () => {
        at += 1;
        await tenant.ingest('custom', {
          events: [{ name: 'step', outcome: 'success', trace_id: `live-${at}`, tags: ['live'] }],
        });
        return child.exitCode !== null;
      },
      { what: 'the end of the command', withinMs: 60_000 },
    );
    expect(await ended).toEqual([0, null]);
    const lines = out
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Data);
    expect(lines).toHaveLength(2);
    expect(new Set(lines.map((one) => one['trace_id'])).size).toBe(2);
  });

  test('the command that follows them ends at an interrupt with code 0', async () => {
    const child = startMillrace(['traces', 'tail', '-n', '100000']);
    let out = '';
    child.stdout?.on('data', (chunk: Buffer) => (out += chunk.toString()));
    const ended = once(child, 'exit');
    let at = 0;
    await eventually(async () => {
      at += 1;
      await tenant.ingest('custom', { events: [{ name: 'step', outcome: 'success', trace_id: `stop-${at}` }] });
      return out !== '';
    });
    child.kill('SIGINT');
    expect(await ended).toEqual([0, null]);
  });
});

test('costs are grouped as asked, and budgets fail over a bound', async () => {
  await tenant.ingest('chatcompletion', modelCall({ attributes: { department: 'search', cost_usd: 3 } }));
  await tenant.landed(1);
  expect((await millrace(['costs'])).records).toEqual([{ model: 'gpt-4o-mini', cost_usd: 3, share: 1 }]);
  expect((await millrace(['costs', '--by', 'department'])).records).toMatchObject([
    { department: 'search', cost_usd: 3 },
  ]);
  expect((await millrace(['costs', '--by', 'day', '--days', '2'])).records).toMatchObject([
    { cost_usd: 0 },
    { cost_usd: 3 },
  ]);
  expect((await millrace(['costs', '-o', 'table'])).out).toMatch(/gpt-4o-mini +\$3\.00 +100\.0 %/);
  await tenant.call('PUT', `/orgs/${tenant.org}/budget`, { body: { tokens: { hard_limit: 160 } } });
  const { code, records } = await millrace(['budgets', '--fail-over', '80']);
  expect([code, records]).toEqual([
    0,
    expect.arrayContaining([expect.objectContaining({ resource: 'tokens', used: 120 })]),
  ]);
  expect((await millrace(['budgets', '--fail-over', '50'])).code).toBe(1);
});

test('prompts are pushed once for each content, labelled, listed and read', async () => {
  const folder = newFolder();
  const [text, chat] = [path.join(folder, 'greet.txt'), path.join(folder, 'chat.json')];
  writeFileSync(text, 'Hello {{name}}\n');
  writeFileSync(chat, JSON.stringify([{ role: 'user', content: 'Hi {{name}}' }]));
  const push = async (file: string, ...more: string[]) =>
    (await millrace(['prompts', 'push', 'greet', '--file', file, ...more])).records;
  expect(await push(text)).toMatchObject([{ name: 'greet', version: '1', template: 'Hello {{name}}', type: 'text' }]);
  expect(await push(text)).toMatchObject([{ version: '1' }]);
  expect(await push(chat, '--label', 'production')).toMatchObject([
    { version: '2', type: 'chat', labels: ['latest', 'production'] },
  ]);
  await millrace(['prompts', 'label', 'greet', 'production', '1']);
  expect((await millrace(['prompts', 'get', 'greet', '--label', 'production', '--template'])).out).toBe(
    'Hello {{name}}\n',
  );
  expect((await millrace(['prompts', 'get', 'greet'])).records).toMatchObject([{ version: '2' }]);
  expect((await millrace(['prompts', 'list'])).records).toMatchObject([{ name: 'greet', version: '2' }]);
});

describe('evals run', () => {
  const judgeOf = async (pattern: string): Promise<string> => {
    const body = {
      name: 'judge',
      kind: 'deterministic',
      rule: { type: 'regex_present', pattern },
      threshold: { pass: 1 },
    };
    const { json } = await tenant.call('POST', '/v1/judges', { body });
    return String((json?.['data'] as Data)['judge_id']);
  };

  test('over stored traces passes and fails a gate', async () => {
    await tenant.ingest('chatcompletion', modelCall({ trace_id: 'run-1' }));
    await tenant.ingest('chatcompletion', modelCall({ trace_id: 'run-2', response: { choices: [] } }));
    await tenant.landed(2);
    const judge = await judgeOf('Paris');
    const run = (...more: string[]) => millrace(['evals', 'run', '--judge', judge, '--sample', '10', ...more]);
    const passed = await run('--fail-under', '0.5');
    expect([passed.code, passed.records]).toMatchObject([0, [{ status: 'complete', stats: { total: 2, passed: 1 } }]]);
    const failed = await run('--fail-under', '0.9');
    expect([failed.code, failed.err]).toEqual([1, expect.stringContaining('pass_rate is 0.5; 0.9 is needed')]);
    expect((await run()).code).toBe(0);
  });

  test('of a dataset calls the model for each item', async () => {
    const body = { name: 'capitals', version: '1', items: [{ input: { text: 'Capital of France?' } }] };
    const { json } = await tenant.call('POST', '/v1/datasets', { body });
    const { dataset_id } = json?.['data'] as { dataset_id: string };
    const args = [
      '--judge',
      await judgeOf('^Paris'),
      '--dataset',
      dataset_id,
      '--model',
      'gpt-4o-mini',
      '--fail-under',
      '1',
    ];
    const { code, records } = await millrace(['evals', 'run', ...args]);
    expect([code, records]).toMatchObject([0, [{ dataset_id, stats: { total: 1, passed: 1 } }]]);
  });
});

describe('setup', () => {
  test('prints settings without the key', async () => {
    const key = tenant.key['X-Org-Api-Key'] ?? '';
    for (const agent of ['claude-code', 'codex', 'cursor']) {
      const { code, out, records } = await millrace(['setup', agent]);
      expect([code, records.length > 0, out.includes(key)]).toEqual([0, true, false]);
      expect(out).toContain(`${api.url}/mcp`);
    }
  });

  test('writes them beside what the files hold, and keeps the key from other people', async () => {
    const [folder, key] = [newFolder(), tenant.key['X-Org-Api-Key'] ?? ''];
    const file = path.join(folder, '.mcp.json');
    writeFileSync(file, '{"mcpServers":{"other":{"type":"stdio"}}}');
    expect((await millrace(['setup', 'claude-code', '--write'], {}, folder)).code).toBe(0);
    const mcp = JSON.parse(readFileSync(file, 'utf8')) as { mcpServers: Data };
    expect(Object.keys(mcp.mcpServers)).toEqual(['other', 'millrace']);
    expect(readFileSync(file, 'utf8')).not.toContain(key);
    const settings = path.join(folder, '.claude/settings.local.json');
    expect(readFileSync(settings, 'utf8')).toContain(key);
    expect(statSync(settings).mode & 0o077).toBe(0);
    const env = { CODEX_HOME: folder };
    expect((await millrace(['setup', 'codex', '--write'], env, folder)).code).toBe(0);
    const toml = readFileSync(path.join(folder, 'config.toml'), 'utf8');
    expect(toml).toContain(`Bearer ${key}`);
    expect(await millrace(['setup', 'codex', '--write'], env, folder)).toMatchObject({ code: 2 });
    expect(readFileSync(path.join(folder, 'config.toml'), 'utf8')).toBe(toml);
  });

  test('leaves a file alone that is not JSON', async () => {
    const folder = newFolder();
    writeFileSync(path.join(folder, '.mcp.json'), '// mine\n{}');
    expect((await millrace(['setup', 'claude-code', '--write'], {}, folder)).code).toBe(2);
    expect(readFileSync(path.join(folder, '.mcp.json'), 'utf8')).toBe('// mine\n{}');
  });
});
