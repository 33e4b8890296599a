// The Python examples of the guide, with the real packages, against a real service. They run where
// python3 has the packages: MILLRACE_PYTHON names the interpreter, for example that of a virtual
// environment. Nothing is downloaded.
import { execFile, execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { codeBlocks } from '../../support/sdk_package.ts';
import { removeDir } from '../../support/temp.ts';
import { say, startUpstream, type TestUpstream } from '../../support/upstream.ts';
import { eventually } from '../../support/wait.ts';
import { TestService } from '../a_service.ts';
import { aTenant, type Tenant } from '../a_tenant.ts';
import type { TestApi } from '../api/an_api.ts';

type Data = Record<string, unknown>;

const GUIDE = readFileSync(new URL('../../../ops/docs/guides/python.md', import.meta.url), 'utf8');
const PYTHON = process.env['MILLRACE_PYTHON'] ?? 'python3';
const PACKAGES = ['openai', 'httpx', 'opentelemetry.sdk', 'opentelemetry.exporter.otlp.proto.http'];

const INSTRUMENTATION = ['opentelemetry.instrumentation.auto_instrumentation', 'openinference.instrumentation.openai'];

/** Returns why something that needs these packages cannot run here; null if it can. */
function missing(packages: readonly string[]): string | null {
  try {
    const imports = packages.map((name) => `import importlib.util; assert importlib.util.find_spec('${name}')`);
    execFileSync(PYTHON, ['-c', imports.join('\n')], { stdio: 'ignore', timeout: 60_000 });
    return null;
  } catch {
    return `${PYTHON} has not all of ${packages.join(', ')}`;
  }
}
const reason = missing(PACKAGES);
const uninstrumented = reason ?? missing(INSTRUMENTATION);

describe.skipIf(reason !== null)(`the Python examples${reason === null ? '' : ` (skipped: ${reason})`}`, () => {
  let service: TestService;
  let api: TestApi;
  let upstream: TestUpstream;
  let tenant: Tenant;

  beforeAll(async () => {
    upstream = await startUpstream();
    upstream.behave(say('Paris.'));
    service = await TestService.start({
      api: { llmUrl: upstream.url },
      worker: { SERVICE_TRACE_GRACE_MS: '50' },
    });
    api = await service.startApi();
  }, 120_000);
  afterAll(async () => {
    await service.close();
    await upstream.close();
  });
  beforeEach(async () => {
    tenant = await aTenant({ api });
  });

  const run = (heading: string): Promise<string> => python(['-c', codeBlocks(GUIDE, heading, 'python')[0] ?? '']);

  async function python(args: readonly string[]): Promise<string> {
    const key = tenant.key['X-Org-Api-Key'] ?? '';
    const env = {
      PATH: process.env['PATH'],
      MILLRACE_URL: api.url,
      MILLRACE_API_KEY: key,
      OPENAI_BASE_URL: upstream.url,
      OPENAI_API_KEY: 'sk-none',
      OTEL_SERVICE_NAME: 'shop',
      OTEL_METRICS_EXPORTER: 'none',
      OTEL_LOGS_EXPORTER: 'none',
      OTEL_EXPORTER_OTLP_PROTOCOL: 'http/protobuf',
      OTEL_EXPORTER_OTLP_ENDPOINT: `${api.url}/v1/otlp`,
      OTEL_EXPORTER_OTLP_HEADERS: `authorization=Bearer%20${key}`,
    };
    const { stdout } = await promisify(execFile)(PYTHON, args, { env, timeout: 60_000 });
    return stdout;
  }

  async function tracesOf(query: string): Promise<Data[]> {
    let traces: Data[] = [];
    await eventually(
      async () => {
        const { json } = await tenant.get(`/v1/traces?${query}`);
        traces = json?.['data'] as Data[];
        return traces.length > 0;
      },
      { what: 'a trace' },
    );
    return traces;
  }

  test('send spans by OTLP with session and user', async () => {
    await run('Traces by environment variables');
    expect(await tracesOf('session_id=session-1&user_id=user-1')).toMatchObject([{ root_span_name: 'answer' }]);
  });

  test.skipIf(uninstrumented !== null)('an application under opentelemetry-instrument sends its calls', async () => {
    const file = path.join(mkdtempSync(path.join(tmpdir(), 'millrace-python-')), 'app.py');
    writeFileSync(
      file,
      `from openai import OpenAI
OpenAI().chat.completions.create(model="gpt-4o-mini", messages=[{"role": "user", "content": "Capital of France?"}])
`,
    );
    await python(['-c', 'from opentelemetry.instrumentation.auto_instrumentation import run; run()', PYTHON, file]);
    removeDir(path.dirname(file));
    const [trace] = await tracesOf('model=gpt-4o-mini');
    expect(trace).toMatchObject({ input_tokens: 100, output_tokens: 20, span_count: 1 });
  });

  test('call the gateway, which records tokens and cost', async () => {
    const said = await run('OpenAI through the gateway');
    expect(said).toMatch(/^\S+ Paris\.\n$/);
    const [trace] = await tracesOf('session_id=session-1&user_id=user-1');
    expect(trace).toMatchObject({ input_tokens: 100, output_tokens: 20, trace_id: said.split(' ', 1)[0] });
  });

  test('read a prompt and write a score', async () => {
    await tenant.call('POST', '/v1/prompts', { body: { name: 'greet', template: 'Hello {{ name }}' } });
    const trace_id = '0af7651916cd43dd8448eb211c80319c';
    await tenant.ingest('custom', { events: [{ name: 'answer', outcome: 'success', trace_id }] });
    await tracesOf(`trace_ids=${trace_id}`);
    const said = await run('Prompts and scores');
    expect(said.split('\n')[0]).toBe('Hello Ada');
    await eventually(
      async () => {
        const { json } = await tenant.get(`/v1/scores?trace_id=${trace_id}`);
        const [score] = json?.['data'] as Data[];
        return score?.['name'] === 'helpful' && score['value'] === true && score['comment'] === 'to the point';
      },
      { what: 'the score' },
    );
  });
});

test('the Python guide names every package that its examples import', () => {
  const imported = [...GUIDE.matchAll(/^(?:from|import) (openai|httpx|opentelemetry)\b/gm)].map(([, name]) => name);
  expect([...new Set(imported)].sort()).toEqual(['httpx', 'openai', 'opentelemetry']);
});
