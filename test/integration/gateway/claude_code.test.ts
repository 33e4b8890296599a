// Claude Code itself in front of the gateway: MILLRACE_CLAUDE_CODE names its binary, that of the npm
// package @anthropic-ai/claude-code. It runs with a home of its own, against a mock upstream.
import { execFile, execFileSync } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type ModelBehaviour, type ModelServer, startModelServer } from '../../support/model_server.ts';
import { removeDir } from '../../support/temp.ts';
import { eventually } from '../../support/wait.ts';
import type { TestApi } from '../api/an_api.ts';
import { TestService } from '../a_service.ts';
import { aTenant, type Tenant } from '../a_tenant.ts';
import { event } from './anthropic_shapes.ts';

type Data = Record<string, unknown>;

const BINARY = process.env['MILLRACE_CLAUDE_CODE'];
const version = BINARY === undefined ? null : execFileSync(BINARY, ['--version'], { encoding: 'utf8' }).trim();
const MODEL = 'claude-sonnet-4-5';
const USAGE = { input_tokens: 10, cache_read_input_tokens: 2000, cache_creation_input_tokens: 300, output_tokens: 5 };

/** Streams one text, or answers whole where the request asks for no stream. */
const model: ModelBehaviour = (res, { body }) => {
  const request = JSON.parse(body.toString() || '{}') as { stream?: boolean; model?: string };
  const message = {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: request.model ?? MODEL,
    stop_sequence: null,
  };
  const text = 'The tests pass.';
  if (request.stream !== true) {
    res.writeHead(200, { 'content-type': 'application/json' });
    res.end(JSON.stringify({ ...message, content: [{ type: 'text', text }], stop_reason: 'end_turn', usage: USAGE }));
    return;
  }
  res.writeHead(200, { 'content-type': 'text/event-stream' });
  res.write(
    event({
      type: 'message_start',
      message: { ...message, content: [], stop_reason: null, usage: { ...USAGE, output_tokens: 1 } },
    }),
  );
  res.write(event({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } }));
  res.write(event({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } }));
  res.write(event({ type: 'content_block_stop', index: 0 }));
  res.write(event({ type: 'message_delta', delta: { stop_reason: 'end_turn', stop_sequence: null }, usage: USAGE }));
  res.end(event({ type: 'message_stop' }));
};

const title = `Claude Code (${version ?? 'skipped: MILLRACE_CLAUDE_CODE names no binary'})`;

describe.skipIf(version === null)(title, () => {
  let service: TestService;
  let upstream: ModelServer;
  let api: TestApi;
  let tenant: Tenant;
  let home: string;

  beforeAll(async () => {
    home = mkdtempSync(path.join(tmpdir(), 'millrace-claude-'));
    upstream = await startModelServer();
    upstream.behave(model);
    service = await TestService.start({
      api: { anthropicUrl: upstream.url.replace('/v1', '') },
      worker: { SERVICE_TRACE_GRACE_MS: '50' },
    });
    api = await service.startApi();
    tenant = await aTenant({ api });
  }, 120_000);
  afterAll(async () => {
    await service.close();
    await upstream.close();
    removeDir(home);
  });

  /** Runs one prompt; returns what Claude Code prints as JSON. */
  function claude(prompt: string): Promise<Data> {
    const env = {
      PATH: process.env['PATH'],
      HOME: home,
      CLAUDE_CONFIG_DIR: path.join(home, 'config'),
      ANTHROPIC_BASE_URL: `${api.url}/anthropic`,
      ANTHROPIC_AUTH_TOKEN: tenant.key['X-Org-Api-Key'] ?? '',
      ANTHROPIC_MODEL: MODEL,
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
      CLAUDE_CODE_MAX_RETRIES: '0',
    };
    const args = ['-p', prompt, '--output-format', 'json'];
    return new Promise((resolve, reject) => {
      const child = execFile(BINARY ?? '', args, { env, cwd: home, timeout: 120_000 }, (error, stdout, stderr) => {
        try {
          resolve(JSON.parse(stdout) as Data);
        } catch {
          reject(new Error(`Claude Code printed no JSON: ${stdout}${stderr}`, { cause: error }));
        }
      });
      child.stdin?.end();
    });
  }

  test('one prompt becomes one trace of its session, with the tokens of the cache', async () => {
    const said = await claude('Do the tests pass?');
    expect(said).toMatchObject({ is_error: false, result: 'The tests pass.' });
    const session_id = String(said['session_id']);
    let traces: Data[] = [];
    await eventually(
      async () => {
        const { json } = await tenant.get(`/v1/traces?session_id=${session_id}&model=${MODEL}`);
        traces = json?.['data'] as Data[];
        return traces.length > 0;
      },
      { what: 'the trace of the session' },
    );
    expect(traces).toHaveLength(1);
    const { json } = await tenant.get(`/v1/traces/${String(traces[0]?.['trace_id'])}/tree`);
    const spans = (json?.['data'] as { spans: Data[] }).spans.filter(({ model: of }) => of === MODEL);
    for (const span of spans) {
      expect(span).toMatchObject({
        source_format: 'messages',
        outcome: 'success',
        input_tokens: 2310,
        output_tokens: 5,
      });
      expect(span['attributes']).toMatchObject({ gateway: true, session_id, stream: true });
    }
    expect(spans.length).toBeGreaterThan(0);
  });

  test('a hard limit of the organization stops it with the reason', async () => {
    await tenant.call('PUT', `/orgs/${tenant.org}/budget`, { body: { tokens: { hard_limit: 1 } } });
    const before = upstream.reached.length;
    const said = await claude('And now?');
    expect(said['is_error']).toBe(true);
    expect(String(said['result'])).toContain('hard limit');
    expect(upstream.reached.slice(before).filter(({ path: of }) => of.startsWith('/v1/messages?'))).toEqual([]);
  });
});
