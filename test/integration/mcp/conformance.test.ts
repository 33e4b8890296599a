// The conformance suite of the Model Context Protocol, in both generations of the protocol. The
// suite sends no credential, so a proxy adds the key of a tenant. Scenarios for servers that carry
// the suite's own fixtures (tools such as test_simple_text, resources, prompts) do not apply.
import { execFile } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type HeaderProxy, startHeaderProxy } from '../../support/header_proxy.ts';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import { removeDir, tempDir } from '../../support/temp.ts';
import { aTenant } from '../a_tenant.ts';
import { startTestApi, type TestApi } from '../api/an_api.ts';

const SUITE = createRequire(import.meta.url).resolve('@modelcontextprotocol/conformance/dist/index.js');
const RUN_MS_MAX = 60_000;

let nats: TestNats;
let api: TestApi;
let proxy: HeaderProxy;
let results: string;

beforeAll(async () => {
  nats = await startTestNats();
  api = await startTestApi({ natsUrl: nats.url });
  const { key } = await aTenant({ api });
  proxy = await startHeaderProxy(() => api.port, { 'x-org-api-key': key['X-Org-Api-Key'] });
  results = tempDir('conformance');
});
afterAll(async () => {
  await proxy.close();
  await api.close();
  await nats.remove();
  removeDir(results);
});

interface Check {
  id: string;
  status: 'SUCCESS' | 'FAILURE' | 'WARNING' | 'SKIPPED' | 'INFO';
  errorMessage?: string;
}

/** Runs a scenario. Resolves with its checks. */
async function checksOf(scenario: string, revision: string): Promise<Check[]> {
  const output = path.join(results, `${scenario}-${revision}`);
  const args = [
    'server',
    '--url',
    `${proxy.url}/mcp`,
    '--scenario',
    scenario,
    '--spec-version',
    revision,
    '--output-dir',
    output,
  ];
  const said = await new Promise<string>((resolve) => {
    // A failed check is an exit code other than 0; the checks say which.
    execFile(process.execPath, [SUITE, ...args], { timeout: RUN_MS_MAX }, (_, stdout, stderr) => {
      resolve(stdout + stderr);
    });
  });
  const file = readdirSync(output, { recursive: true, encoding: 'utf8' }).find((name) => name.endsWith('checks.json'));
  if (file === undefined) throw new Error(`the suite wrote no checks: ${said}`);
  return JSON.parse(readFileSync(path.join(output, file), 'utf8')) as Check[];
}

/** Checks that need a tool of the suite's own fixtures, or a feature that this server does not declare. */
const NOT_TESTABLE: Readonly<Record<string, readonly string[]>> = {
  'server-stateless': [
    'sep-2575-server-rejects-undeclared-capability',
    'sep-2575-missing-capability-http-400',
    'sep-2575-http-server-no-independent-requests-on-stream',
    'sep-2575-server-no-log-without-loglevel',
  ],
  caching: [
    'sep-2549-prompts-list-caching-hints',
    'sep-2549-resources-list-caching-hints',
    'sep-2549-resources-templates-list-caching-hints',
  ],
};

it.each([
  ['server-initialize', '2025-06-18'],
  ['server-initialize', '2025-11-25'],
  ['ping', '2025-06-18'],
  ['ping', '2025-11-25'],
  ['tools-list', '2025-06-18'],
  ['tools-list', '2025-11-25'],
  ['tools-list', '2026-07-28'],
  ['dns-rebinding-protection', '2025-11-25'],
  ['dns-rebinding-protection', '2026-07-28'],
  ['server-stateless', '2026-07-28'],
  ['http-header-validation', '2026-07-28'],
  ['caching', '2026-07-28'],
])('passes every check of the scenario %s that applies, in revision %s', async (scenario, revision) => {
  const checks = await checksOf(scenario, revision);
  const of = (...statuses: Check['status'][]): string[] =>
    checks.filter(({ status }) => statuses.includes(status)).map(({ id, errorMessage }) => `${id}: ${errorMessage}`);
  expect(checks.some(({ status }) => status === 'SUCCESS')).toBe(true);
  expect([of('FAILURE'), of('WARNING')]).toEqual([
    (NOT_TESTABLE[scenario] ?? []).map((id): unknown =>
      expect.stringMatching(`^${id}: (Not testable|.*Method not found)`),
    ),
    [],
  ]);
});
