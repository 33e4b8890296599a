// Applications that use the SDK from its tarball, against a real service. Importing this module starts
// the service for the test file and stops it after it.
import { execFile } from 'node:child_process';
import { mkdtempSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, beforeEach } from 'vitest';
import { installedSdk } from '../../support/sdk_package.ts';
import { removeDir } from '../../support/temp.ts';
import { say, startUpstream, type TestUpstream } from '../../support/upstream.ts';
import { eventually } from '../../support/wait.ts';
import { TestService } from '../a_service.ts';
import { aTenant, type Tenant } from '../a_tenant.ts';
import type { TestApi } from '../api/an_api.ts';

export type Data = Record<string, unknown>;

/** Folder of the applications, with the packages that they import. */
export let app: string;
export let api: TestApi;
export let tenant: Tenant;
let service: TestService;
let upstream: TestUpstream;

beforeAll(async () => {
  [upstream, app] = await Promise.all([startUpstream(), installedSdk()]);
  service = await TestService.start({ api: { llmUrl: upstream.url }, worker: { SERVICE_TRACE_GRACE_MS: '50' } });
  api = await service.startApi();
}, 240_000);
afterAll(async () => {
  await service.close();
  await upstream.close();
  removeDir(path.dirname(app));
});
beforeEach(async () => {
  tenant = await aTenant({ api });
  upstream.behave(say('Paris.'));
});

/** Variables of an application that sends to the service. */
export const environment = (url = api.url, folder = mkdtempSync(path.join(app, 'tmp-'))): Record<string, string> => ({
  PATH: process.env['PATH'] ?? '',
  TMPDIR: folder,
  MILLRACE_URL: url,
  MILLRACE_API_KEY: tenant.key['X-Org-Api-Key'] ?? '',
  OPENAI_BASE_URL: upstream.url,
  OPENAI_API_KEY: 'sk-none',
});

/** Runs an application and returns its output. */
export async function runApp(name: string, text: string, env = environment(), args: string[] = []): Promise<string> {
  const file = path.join(app, `${name}.mjs`);
  writeFileSync(file, text);
  const { stdout } = await promisify(execFile)(process.execPath, [...args, file], { cwd: app, env });
  return stdout;
}

interface Outline {
  spans: { span_id: string[]; kind: string[] };
}

/** Returns the kind of each span, which the outline of a trace has. */
const kindsOf = (outline: Outline | undefined): Map<unknown, string | undefined> =>
  new Map(outline?.spans.span_id.map((span_id, index) => [span_id, outline.spans.kind[index]]));

/** Returns the spans of the tenant's only trace once it has this many, each with its trace id. */
export async function spansOf(count: number): Promise<Data[]> {
  let spans: Data[] = [];
  await eventually(
    async () => {
      const { json } = await tenant.get('/v1/traces');
      const [trace] = json?.['data'] as Data[];
      if (trace === undefined) return false;
      const path = `/v1/traces/${String(trace['trace_id'])}`;
      const { json: tree } = await tenant.get(`${path}/tree`);
      const { json: outline } = await tenant.get(`${path}/outline`);
      const kinds = kindsOf(outline?.['data'] as Outline | undefined);
      spans = ((tree?.['data'] as Data | undefined)?.['spans'] as Data[]).map((span) => ({
        ...span,
        kind: kinds.get(span['span_id']),
        trace_id: trace['trace_id'],
      }));
      return spans.length === count;
    },
    { what: `a trace of ${count} spans` },
  );
  return spans;
}
