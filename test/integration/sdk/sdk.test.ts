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

/** Forwards connections of a port to the API. */
async function forward(port: number): Promise<Server> {
  const to = Number(new URL(api.url).port);
  const server = createServer((socket) => {
    const onward = connect(to, '127.0.0.1');
    socket.pipe(onward).pipe(socket);
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
