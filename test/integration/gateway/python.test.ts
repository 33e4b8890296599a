// The gateway under the official Python packages openai and anthropic: answers, streams, traces, typed
// errors, retries and time limits. They run where python3 has the packages: MILLRACE_PYTHON names the
// interpreter, for example that of a virtual environment. Nothing is downloaded.
import { execFile, execFileSync } from 'node:child_process';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { events, json, type ModelServer, silence, startModelServer } from '../../support/model_server.ts';
import type { TestApi } from '../api/an_api.ts';
import { TestService } from '../a_service.ts';
import { aTenant, type Tenant } from '../a_tenant.ts';
import { eventually } from '../../support/wait.ts';
import { MESSAGE, MESSAGE_COST, STREAM as MESSAGE_STREAM } from './anthropic_shapes.ts';
import { COMPLETION, LAST, STREAM, USAGE } from './openai_shapes.ts';

type Data = Record<string, unknown>;

const PYTHON = process.env['MILLRACE_PYTHON'] ?? 'python3';

/** Returns the versions of the packages; null where the interpreter has not all of them. */
function versions(): string | null {
  try {
    const show = 'import openai, anthropic; print(f"openai {openai.__version__}, anthropic {anthropic.__version__}")';
    return execFileSync(PYTHON, ['-c', show], { encoding: 'utf8', stdio: 'pipe', timeout: 60_000 }).trim();
  } catch {
    return null;
  }
}
const found = versions();

const CLIENTS = {
  openai: `
import json, os, openai
client = openai.OpenAI(api_key=os.environ["KEY"], base_url=os.environ["URL"] + "/v1", max_retries=0)
ask = {"model": "gpt-4o-mini", "messages": [{"role": "user", "content": "The capital of France?"}]}
`,
  anthropic: `
import json, os, anthropic
client = anthropic.Anthropic(api_key=os.environ["KEY"], base_url=os.environ["URL"] + "/anthropic", max_retries=0)
ask = {"model": "claude-sonnet-4-5", "max_tokens": 100, "messages": [{"role": "user", "content": "The capital of France?"}]}
`,
};

const title = `the Python packages (${found ?? `skipped: ${PYTHON} has not both of openai and anthropic`})`;

describe.skipIf(found === null)(title, () => {
  let service: TestService;
  let upstream: ModelServer;
  let api: TestApi;
  let tenant: Tenant;

  beforeAll(async () => {
    upstream = await startModelServer();
    service = await TestService.start({
      api: { llmUrl: upstream.url, anthropicUrl: upstream.url.replace('/v1', '') },
      worker: { SERVICE_TRACE_GRACE_MS: '50' },
    });
    api = await service.startApi();
    tenant = await aTenant({ api });
  }, 120_000);
  afterAll(async () => {
    await service.close();
    await upstream.close();
  });

  /** Runs a script after the lines that make its client. Returns the JSON that it prints. */
  async function python(client: keyof typeof CLIENTS, script: string, key?: string): Promise<Data> {
    const env = { PATH: process.env['PATH'], URL: api.url, KEY: key ?? tenant.key['X-Org-Api-Key'] ?? '' };
    const { stdout } = await promisify(execFile)(PYTHON, ['-c', CLIENTS[client] + script], { env, timeout: 60_000 });
    return JSON.parse(stdout) as Data;
  }

  async function spanOf(trace_id: unknown): Promise<Data> {
    let spans: Data[] = [];
    await eventually(
      async () => {
        const { json: body } = await tenant.get(`/v1/traces/${String(trace_id)}/tree`);
        spans = ((body?.['data'] as Data | undefined)?.['spans'] ?? []) as Data[];
        return spans.length > 0;
      },
      { what: `the trace ${String(trace_id)}` },
    );
    return spans[0] ?? {};
  }

  test('openai gets an answer and a stream with its usage, which become spans', async () => {
    upstream.behave(json(200, JSON.stringify(COMPLETION)), events([...STREAM, ...LAST]));
    const said = await python(
      'openai',
      `
whole = client.chat.completions.with_raw_response.create(**ask)
streamed = client.chat.completions.with_raw_response.create(**ask, stream=True, stream_options={"include_usage": True})
text, usage = "", None
for chunk in streamed.parse():
    text += (chunk.choices[0].delta.content or "") if chunk.choices else ""
    usage = chunk.usage or usage
print(json.dumps({"text": whole.parse().choices[0].message.content, "trace": whole.headers["x-service-trace-id"],
                  "streamed": text, "tokens": usage.total_tokens, "stream_trace": streamed.headers["x-service-trace-id"]}))`,
    );
    expect(said).toMatchObject({ text: 'Paris.', streamed: 'Paris – 巴黎.', tokens: USAGE.total_tokens });
    expect(await spanOf(said['trace'])).toMatchObject({ input_tokens: 14, output_tokens: 2, response: 'Paris.' });
    expect(await spanOf(said['stream_trace'])).toMatchObject({ input_tokens: 1000, output_tokens: 500 });
  });

  test('anthropic gets a message and a stream, which become spans with the price of the cache', async () => {
    upstream.behave(json(200, JSON.stringify(MESSAGE)), events(MESSAGE_STREAM), json(200, '{"input_tokens": 42}'));
    const said = await python(
      'anthropic',
      `
whole = client.messages.with_raw_response.create(**ask)
with client.messages.stream(**ask) as stream:
    message, headers = stream.get_final_message(), stream.response.headers
counted = client.messages.count_tokens(model=ask["model"], messages=ask["messages"])
print(json.dumps({"text": whole.parse().content[1].text, "trace": whole.headers["x-service-trace-id"],
                  "kinds": [block.type for block in message.content], "tokens": message.usage.output_tokens,
                  "stream_trace": headers["x-service-trace-id"], "counted": counted.input_tokens}))`,
    );
    expect(said).toMatchObject({ text: 'Paris.', kinds: ['thinking', 'text', 'tool_use'], tokens: 50, counted: 42 });
    for (const trace of [said['trace'], said['stream_trace']]) {
      const span = await spanOf(trace);
      expect(span).toMatchObject({ source_format: 'messages', input_tokens: 1310, output_tokens: 50 });
      expect(span['cost_usd']).toBeCloseTo(MESSAGE_COST, 12);
    }
  });

  test.each(['openai', 'anthropic'] as const)(
    '%s raises its own errors: an unknown key, a limit that is reached, a model that is not allowed',
    async (client) => {
      const answer = client === 'openai' ? COMPLETION : MESSAGE;
      upstream.behave(json(200, JSON.stringify(answer)));
      const other = await aTenant({ api });
      const limits = {
        models: ['gpt-4o-mini', 'claude-sonnet-4-5'],
        budget: { resource: 'tokens', hard_limit: 1, period: 'day' },
      };
      const body = { name: 'limited', scopes: ['gateway:invoke'], ...limits };
      const made = await other.call('POST', `/orgs/${other.org}/api-keys`, { body });
      const create = client === 'openai' ? 'client.chat.completions.create' : 'client.messages.create';
      const errors = await python(
        client,
        `
def kind(call):
    try:
        call()
        return None
    except Exception as error:
        return [type(error).__name__, getattr(error, "status_code", None)]
first = kind(lambda: ${create}(**ask))
print(json.dumps({
  "first": first,
  "limit": kind(lambda: ${create}(**ask)),
  "model": kind(lambda: ${create}(**{**ask, "model": "another-model"})),
  "key": kind(lambda: ${create}(**ask, extra_headers={"Authorization": "Bearer none", "x-api-key": "none"})),
}))`,
        String(made.json?.['raw_key']),
      );
      expect(errors).toEqual({
        first: null,
        limit: ['RateLimitError', 429],
        model: ['PermissionDeniedError', 403],
        key: ['AuthenticationError', 401],
      });
    },
  );

  test.each(['openai', 'anthropic'] as const)(
    '%s retries an overloaded upstream, and times out by itself',
    async (client) => {
      const answer = client === 'openai' ? COMPLETION : MESSAGE;
      const create = client === 'openai' ? 'chat.completions.create' : 'messages.create';
      const overloaded = json(503, '{"error": {"message": "overloaded", "type": "overloaded"}}', {
        'retry-after-ms': '1',
      });
      upstream.reached.length = 0;
      upstream.behave(overloaded, json(200, JSON.stringify(answer)), silence);
      const said = await python(
        client,
        `
first = client.with_options(max_retries=2).${create}(**ask)
try:
    client.with_options(timeout=0.5).${create}(**ask)
    late = None
except Exception as error:
    late = type(error).__name__
print(json.dumps({"id": first.id, "late": late}))`,
      );
      expect(said).toEqual({ id: answer.id, late: 'APITimeoutError' });
      expect(upstream.reached).toHaveLength(3);
      await eventually(() => upstream.reached[2]?.gone === true, { what: 'the end of the call to the upstream' });
    },
  );
});
