// The examples of the guide "TypeScript SDK" from the tarball, and what the guide promises: rejected
// spans are reported, immediate exports need no batch, providers of other versions of OpenTelemetry work.
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { jsBlocks } from '../../support/sdk_package.ts';
import { eventually } from '../../support/wait.ts';
import { app, type Data, environment, runApp, spansOf, tenant } from './an_app.ts';

const GUIDE = readFileSync(new URL('../../../ops/docs/guides/typescript-sdk.md', import.meta.url), 'utf8');
const example = (heading: string): string => jsBlocks(GUIDE, heading)[0] ?? '';

describe('the examples of the guide', () => {
  test('a step carries session, user, department, environment and release, and has a score', async () => {
    const said = await runApp('steps', example('Steps, scores and whose work it is'));
    expect(said).toBe('{ sent: 1, spooled: 0, dropped: 0 }\n');
    const [span] = await spansOf(1);
    expect(span).toMatchObject({ name: 'answer', attributes: { department: 'support', 'user.id': 'user-1' } });
    await eventually(async () => {
      const { json } = await tenant.get(`/v1/scores?trace_id=${String(span?.['trace_id'])}`);
      return (json?.['data'] as Data[]).some(({ name, value }) => name === 'long_question' && value === true);
    });
  });

  test('a serverless function has sent its span when it returns', async () => {
    await runApp('serverless', example('Serverless'));
    expect(await spansOf(1)).toMatchObject([{ name: 'work', response: 'done 1' }]);
  });

  test("an application's own provider exports to others and to Millrace", async () => {
    await runApp('beside', example('Beside OpenTelemetry of your own'));
    expect((await spansOf(2)).map(({ name }) => name)).toEqual(['outer', 'inner']);
  });

  test('a call through the gateway is below the step, with its session and user, and is counted once', async () => {
    await runApp('gateway', example('Through the gateway'));
    const [step, call] = await spansOf(2);
    expect(call).toMatchObject({ parent_span_id: step?.['span_id'], model: 'gpt-4o-mini', input_tokens: 100 });
    // The step and the call may land one after the other.
    const traces = async () =>
      (await tenant.get('/v1/traces?session_id=session-1&user_id=user-1')).json?.['data'] as Data[];
    await eventually(async () => (await traces())[0]?.['span_count'] === 2, { what: 'both spans in the list' });
    expect(await traces()).toMatchObject([{ root_span_name: 'ask', input_tokens: 100 }]);
  });
});

test('spans that the service rejects beside others are dropped, and onError gets the reason', async () => {
  const said = await runApp(
    'partial',
    `import { trace } from '@opentelemetry/api';
     import { init, observe } from '@millrace/sdk';
     const errors = [];
     const millrace = init({ onError: ({ message }) => errors.push(message) });
     observe(() => 1, { name: 'good' })();
     const startTime = Date.now() + 3_600_000;
     trace.getTracer('test').startSpan('future', { startTime, attributes: { 'openinference.span.kind': 'CHAIN' } }).end(startTime);
     console.log(JSON.stringify({ ...(await millrace.flush()), errors }));
     await millrace.shutdown();`,
  );
  const { errors, ...counts } = JSON.parse(said) as { errors: string[] };
  expect(counts).toEqual({ sent: 1, spooled: 0, dropped: 1 });
  expect(errors).toEqual([
    expect.stringMatching(/^the service rejected 1 spans: 1 of 2 spans were rejected\. span 1: \S/),
  ]);
  expect(await spansOf(1)).toMatchObject([{ name: 'good' }]);
});

describe('a thread that ends at once, without a flush', () => {
  const thread = (exportMode: string): string =>
    `import { Worker, isMainThread } from 'node:worker_threads';
     if (isMainThread) await new Promise((resolve) => new Worker(new URL(import.meta.url)).once('exit', resolve));
     else {
       const { init, observe } = await import('@millrace/sdk');
       init({ exportMode: '${exportMode}', flushOnExit: false, spool: false });
       observe(() => 'done', { name: 'work' })();
     }`;

  test('has sent its span with exportMode immediate', async () => {
    await runApp('immediate', thread('immediate'));
    expect(await spansOf(1)).toMatchObject([{ name: 'work' }]);
  });

  test.each([
    ['immediate', 1],
    ['batched', 0],
  ])('with exportMode %s makes %s requests', async (mode, count) => {
    let requests = 0;
    const server = createServer((req, res) => {
      requests += 1;
      req.resume();
      res.writeHead(200, { 'content-type': 'application/x-protobuf' }).end();
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    await runApp(`counted_${mode}`, thread(mode), environment(`http://127.0.0.1:${port}`));
    expect(requests).toBe(count);
    server.close();
  });
});

/** Installs a package with its own copy of OpenTelemetry; returns why that failed, or null. */
async function installBeside(folder: string, packages: readonly string[]): Promise<string | null> {
  mkdirSync(folder);
  writeFileSync(path.join(folder, 'package.json'), '{}');
  const quiet = ['--no-audit', '--no-fund', '--ignore-scripts', '--loglevel=error', '--prefer-offline'];
  return promisify(execFile)('npm', ['install', ...quiet, ...packages], { cwd: folder, timeout: 120_000 }).then(
    () => null,
    (error: unknown) => `npm cannot install ${packages.join(' ')}: ${String(error).slice(0, 200)}`,
  );
}

test.each([
  ['1', '@opentelemetry/sdk-trace-base@1.30.1', '1.9.1', 'sdk-trace-base', 'BasicTracerProvider'],
  ['3', '@opentelemetry/sdk-trace@3.1.1', '1.10.0', 'sdk-trace', 'TracerProvider'],
])(
  'a provider of OpenTelemetry %s makes spans that arrive with their parents, session and resource',
  async (major, packageName, apiVersion, name, provider) => {
    const folder = path.join(app, `otel${major}`);
    const failure = await installBeside(folder, [packageName, `@opentelemetry/api@${apiVersion}`]);
    if (failure !== null) {
      // Without a registry the package cannot be had, and there is nothing to test.
      expect(failure).toMatch(/ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ETIMEDOUT|ENOTCACHED/);
      return;
    }
    await runApp(
      `provider${major}`,
      `import { createRequire } from 'node:module';
       import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
       import { init, observe, withWhose } from '@millrace/sdk';
       const require = createRequire(${JSON.stringify(`${folder}/package.json`)});
       const own = require('@opentelemetry/api');
       const { ${provider} } = require('@opentelemetry/${name}');
       const millrace = init({ provider: 'none' });
       own.context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
       own.trace.setGlobalTracerProvider(new ${provider}({ spanProcessors: [millrace.processor] }));
       const inner = observe((text) => text.toUpperCase(), { name: 'inner', kind: 'tool' });
       await withWhose({ sessionId: 'session-1' }, () => observe(() => inner('done'), { name: 'outer', kind: 'agent' })());
       await millrace.shutdown();`,
    );
    const [outer, inner] = await spansOf(2);
    expect(outer).toMatchObject({ name: 'outer', parent_span_id: null, attributes: { 'session.id': 'session-1' } });
    expect(inner).toMatchObject({ name: 'inner', parent_span_id: outer?.['span_id'], response: 'DONE' });
    expect(inner).toMatchObject({ attributes: { span_kind: 'tool', 'session.id': 'session-1' } });
  },
);
