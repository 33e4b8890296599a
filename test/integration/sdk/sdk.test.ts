// The SDK from its tarball, in applications that are its README's own, against the real service.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { type AddressInfo, connect, createServer, type Server } from 'node:net';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { jsBlocks } from '../../support/sdk_package.ts';
import { eventually } from '../../support/wait.ts';
import { api, app, type Data, environment, runApp, spansOf, tenant } from './an_app.ts';

const README = readFileSync(new URL('../../../api/sdk/README.md', import.meta.url), 'utf8');

/** Attributes that withWhose of the README sets. */
const WHOSE = { 'session.id': 'session-1', 'user.id': 'user-1' };
const [OWN = ''] = jsBlocks(README, 'Steps of your own');

describe('the recipes of the README', () => {
  test('steps of an application are one trace with session and user on every span, and a score', async () => {
    await runApp('own', OWN);
    const spans = await spansOf(3);
    expect(spans.map(({ name }) => name)).toEqual(['answer', 'search', 'choose']);
    for (const span of spans) expect(span).toMatchObject({ tags: ['beta'], attributes: WHOSE });
    const trace_id = String(spans[0]?.['trace_id']);
    await eventually(
      async () => {
        const { json } = await tenant.get(`/v1/scores?trace_id=${trace_id}`);
        const scores = json?.['data'] as Data[];
        return scores.length === 1 && scores[0]?.['name'] === 'pages_found' && scores[0]['value'] === 1;
      },
      { what: 'the score' },
    );
  });

  test.each([
    ['With the OpenAI package', 1],
    ['With the Vercel AI SDK, version 7', 3],
  ] as const)('%s: the call is counted once and carries session and user', async (heading, count) => {
    await runApp('vendor', jsBlocks(README, heading)[0] ?? '');
    const spans = await spansOf(count);
    expect(spans.reduce((sum, span) => sum + Number(span['input_tokens']), 0)).toBe(100);
    expect(spans.filter(({ model }) => model === 'gpt-4o-mini')).toHaveLength(1);
    for (const span of spans) expect(span).toMatchObject({ attributes: WHOSE });
    // One below the other: of the AI SDK the run, its step, and the call.
    const parents = new Map(spans.map(({ span_id, parent_span_id }) => [span_id, parent_span_id]));
    const call = spans.find(({ model }) => model === 'gpt-4o-mini');
    expect(call).toMatchObject({ kind: 'llm', response: 'Paris.', output_tokens: 20 });
    const line: unknown[] = [];
    for (let at = call?.['span_id']; at !== null && at !== undefined && line.length <= count; at = parents.get(at))
      line.push(at);
    expect(line).toHaveLength(count);
  });

  test('scores, prompts and analytics answer', async () => {
    const made = await tenant.call('POST', '/v1/prompts', { body: { name: 'greeting', template: 'Hello {{name}}' } });
    const { version } = made.json?.['data'] as Data;
    await tenant.call('PUT', '/v1/prompts/greeting/labels/production', { body: { version } });
    const said = await runApp('client', jsBlocks(README, 'Scores, prompts, analytics')[0] ?? '');
    expect(said.split('\n')[0]).toBe('Hello Ada');
  });

  test('an application with a provider of its own adds the processor to it', async () => {
    await runApp('provider', jsBlocks(README, 'An application that has OpenTelemetry already')[0] ?? '');
    expect(await spansOf(1)).toMatchObject([{ name: 'work' }]);
  });

  test('node --import @millrace/sdk/auto traces the OpenAI package without a change', async () => {
    const text = `import { createRequire } from 'node:module';
      const { default: OpenAI } = createRequire(import.meta.url)('openai');
      await new OpenAI().chat.completions.create({ model: 'gpt-4o-mini', messages: [{ role: 'user', content: 'Hello' }] });`;
    await runApp('auto', text, environment(), ['--import', '@millrace/sdk/auto']);
    expect(await spansOf(1)).toMatchObject([{ model: 'gpt-4o-mini', input_tokens: 100 }]);
  });
});

/** Returns a port that nothing listens on. */
async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

/**
 * Forwards connections of a port to the API.
 * @param loses called with the number of each connection; if true, its answer is lost on the way
 */
async function forward(port: number, loses: (connection: number) => boolean = () => false): Promise<Server> {
  const to = Number(new URL(api.url).port);
  let connections = 0;
  const server = createServer((socket) => {
    connections += 1;
    const isLost = loses(connections);
    const onward = connect(to, '127.0.0.1');
    socket.pipe(onward);
    // The service has answered, so it has stored the body; the client sees a broken connection.
    if (isLost) onward.once('data', () => socket.destroy());
    else onward.pipe(socket);
    for (const end of [socket, onward]) end.on('error', () => end.destroy());
  }).listen(port, '127.0.0.1');
  await once(server, 'listening');
  return server;
}

test('spans wait on the disk while the service is away; another process sends each once after a kill', async () => {
  const port = await freePort();
  const env = environment(`http://127.0.0.1:${port}`);
  const file = path.join(app, 'away.mjs');
  writeFileSync(
    file,
    `import { init, observe } from '@millrace/sdk';
     const millrace = init();
     if (process.argv[2] === 'work') for (let at = 0; at < 3; at += 1) observe(() => at, { name: 'work ' + at })();
     console.log(JSON.stringify(await millrace.flush(20000)));
     setInterval(() => {}, 1000);`,
  );
  const run = async (...args: string[]): Promise<unknown> => {
    const child = spawn(process.execPath, [file, ...args], { cwd: app, env });
    const [chunk] = (await once(child.stdout, 'data')) as [Buffer];
    child.kill('SIGKILL');
    await once(child, 'exit');
    return JSON.parse(chunk.toString());
  };
  expect(await run('work')).toEqual({ sent: 0, spooled: 3, dropped: 0 });
  const gate = await forward(port);
  try {
    expect(await run()).toEqual({ sent: 0, spooled: 0, dropped: 0 });
    expect(await run('work')).toEqual({ sent: 3, spooled: 0, dropped: 0 });
    await eventually(
      async () => {
        const { json } = await tenant.get('/v1/traces');
        const names = (json?.['data'] as Data[]).map(({ root_span_name }) => root_span_name).sort();
        return names.join() === 'work 0,work 0,work 1,work 1,work 2,work 2';
      },
      { what: 'three spans of each process' },
    );
  } finally {
    gate.close();
  }
});

/** Ends spans, and kills itself as soon as the SDK reports that they wait on the disk. */
const KILLED = `import { init, observe } from '@millrace/sdk';
  const onError = ({ message }) => {
    if (message.includes('kept on the disk')) process.kill(process.pid, 'SIGKILL');
  };
  init({ onError });
  for (let at = 0; at < 50; at += 1) observe(() => at, { name: 'work ' + at })();
  setInterval(() => {}, 1000);`;
const NEXT = `import { init } from '@millrace/sdk';
  await init().flush(20000);`;

const rootsOf = async (): Promise<string[]> => {
  const { json } = await tenant.get('/v1/traces?limit=200');
  return (json?.['data'] as Data[]).map(({ root_span_name }) => String(root_span_name)).sort();
};
const WORK = Array.from({ length: 50 }, (_, at) => `work ${at}`).sort();

test.each([
  ['the service is away', false],
  ['the answer of the service is lost after it has stored the spans', true],
])('an application that is killed without a flush while %s loses and doubles nothing', async (_, isAnswerLost) => {
  const port = await freePort();
  const env = environment(`http://127.0.0.1:${port}`);
  const lossy = isAnswerLost ? await forward(port, () => true) : null;
  await expect(runApp('killed', KILLED, env)).rejects.toMatchObject({ signal: 'SIGKILL' });
  lossy?.close();
  if (isAnswerLost) await eventually(async () => (await rootsOf()).length === WORK.length, { what: 'the first copy' });
  else expect(await rootsOf()).toEqual([]);
  const gate = await forward(port);
  try {
    await runApp('next', NEXT, env);
    await eventually(async () => (await rootsOf()).length >= WORK.length, { what: 'every span' });
    // Another span is stored after the repeats, which were dropped by then.
    await runApp(
      'last',
      KILLED.replace('at < 50', 'at < 1')
        .replace('work ', 'last ')
        .replace(/setInterval.*$/s, ''),
      env,
    );
    await eventually(async () => (await rootsOf()).includes('last 0'), { what: 'the last span' });
    expect(await rootsOf()).toEqual(['last 0', ...WORK]);
    const { json } = await tenant.get('/v1/traces?limit=200');
    expect((json?.['data'] as Data[]).every(({ span_count }) => span_count === 1)).toBe(true);
  } finally {
    gate.close();
  }
});
