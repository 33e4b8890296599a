// Runs the documentation: every shell block of the guides and of the operator's pages goes through
// bash, in reading order, against a real service with a model server behind it. Blocks that cannot
// run say so in a comment.
import { execFile } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startModelServer, json, type ModelServer } from '../support/model_server.ts';
import { startReceiver, type Receiver } from '../support/receiver.ts';
import { serviceDir, startService, type TestService } from '../support/service.ts';
import { installedCli } from '../support/sdk_package.ts';
import { shellBlocks } from '../support/shell_blocks.ts';
import { removeDir } from '../support/temp.ts';

const DOCS = path.resolve(import.meta.dirname, '../../ops/docs');
/**
 * Pages whose blocks need what earlier pages created, in the order of the README's table; all
 * others follow.
 */
const ORDER = [
  'guides/sending',
  'guides/people-and-keys',
  'guides/opentelemetry',
  'guides/gateway',
  'guides/reading',
  'guides/prompts',
  'guides/command-line',
];
const SCRIPT_MS_MAX = 80_000;
/**
 * Sent events are readable a moment later, so failing commands are repeated as a person would
 * repeat them.
 */
const PROLOGUE = `set -euo pipefail
[ ! -f "$STATE" ] || source "$STATE"
set -a
curl() {
  local out tries=0
  until out=$(command curl --fail-with-body "$@"); do
    tries=$((tries + 1))
    if ((tries >= 60)); then printf 'curl %s\\n%s\\n' "$*" "$out" >&2; return 22; fi
    command sleep 0.5
  done
  printf '%s\\n' "$out"
}
millrace() {
  local tries=0
  until command millrace "$@"; do
    tries=$((tries + 1))
    if ((tries >= 20)); then return 1; fi
    command sleep 0.5
  done
}
`;

const ANSWER = JSON.stringify({
  id: 'chatcmpl-1',
  object: 'chat.completion',
  model: 'gpt-4o-mini',
  choices: [
    { index: 0, message: { role: 'assistant', content: '{"score": 4, "reason": "Paris"}' }, finish_reason: 'stop' },
  ],
  usage: { prompt_tokens: 12, completion_tokens: 3, total_tokens: 15 },
});

const pages = readdirSync(DOCS, { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.md'))
  .map((file) => file.slice(0, -'.md'.length))
  .sort((a, b) => rank(a) - rank(b) || a.localeCompare(b));

function rank(page: string): number {
  const at = ORDER.indexOf(page);
  return at < 0 ? ORDER.length : at;
}

const blocksOf = (page: string) => shellBlocks(readFileSync(path.join(DOCS, `${page}.md`), 'utf8'));

let service: TestService;
let model: ModelServer;
let receiver: Receiver;
let state: string;
/** The command `millrace` as npm installs it. */
let cli: string;

beforeAll(async () => {
  model = await startModelServer();
  model.behave(json(200, ANSWER));
  receiver = await startReceiver();
  cli = await installedCli();
  service = await startService({
    env: { SERVICE_LLM_BASE_URL: model.url, SERVICE_LLM_API_KEY: 'key-of-the-provider' },
  });
  state = path.join(serviceDir(), '..', 'state.sh');
});

afterAll(async () => {
  await service.stop();
  await model.close();
  await receiver.close();
  removeDir(path.resolve(cli, '../../../..'));
});

/**
 * Runs a script and resolves with its output. @throws Error with what it printed when a command
 * fails
 */
function bash(script: string): Promise<string> {
  const env = {
    PATH: `${path.dirname(cli)}:${process.env['PATH'] ?? ''}`,
    HOME: process.env['HOME'],
    STATE: state,
    URL: service.baseUrl,
    ORG: service.orgId,
    KEY: service.secrets.api_key,
    SERVICE_ADMIN_TOKEN: service.secrets.admin_token,
  };
  return new Promise((resolve, reject) => {
    execFile('bash', ['-c', script], { env, timeout: SCRIPT_MS_MAX }, (error, stdout, stderr) => {
      if (error === null) resolve(stdout);
      else reject(new Error(`${error.message}\n${stdout}\n${stderr}`));
    });
  });
}

it.each(pages.filter((page) => blocksOf(page).some(({ notRun }) => notRun === null)))(
  'every shell block of %s runs against a real service',
  async (page) => {
    const commands = blocksOf(page)
      .filter(({ notRun }) => notRun === null)
      .map(({ text }) => text)
      .join('\n')
      .replaceAll('./data/secrets.json', path.join(service.dataDir, 'secrets.json'))
      // The service under test reaches no address outside this machine.
      .replaceAll('https://example.com/hook', `${receiver.url}/hook`);
    const output = await bash(`${PROLOGUE}${commands}\nexport -p > "$STATE"\n`);
    expect(output).not.toBe('');
  },
);

it('every shell block that is not run says why', () => {
  const reasons = pages.flatMap((page) => blocksOf(page).flatMap(({ notRun }) => (notRun === null ? [] : [notRun])));
  expect(reasons.every((reason) => reason.length > 0)).toBe(true);
  expect(pages.flatMap(blocksOf).length).toBeGreaterThan(reasons.length);
});
