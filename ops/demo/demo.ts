// `npm run demo`: sends agent runs to a running service as the telemetry that their agents would
// have sent, waits until the service shows all of it, compares it with what was sent, and prints
// commands to explore it. The exit code is 0 when everything matches, 1 when something differs or
// the service cannot be used.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { countTokens } from 'gpt-tokenizer/encoding/o200k_base';
import { z } from 'zod';
import { EnvError, parseEnv } from '../platform/env.ts';
import { inParallel } from '../platform/in_parallel.ts';
import {
  compareOutlines,
  compareTotals,
  countTagged,
  expectedTotals,
  listTagged,
  OUTLINES_MAX,
  readTotals,
  waitForTraces,
  type Totals,
} from './checks.ts';
import { runEvents, type RunEvents } from './events.ts';
import { outline, outlineSpan } from './outline.ts';
import { planRun } from './plan.ts';
import { dailyRuns } from './daily.ts';
import { startProgress } from './progress.ts';
import { HELP_RUN, helpDesk } from './help_desk.ts';
import { runEvals, sendRegistry } from './registry.ts';
import { scenarios } from './scenarios.ts';
import { durationOf, scenarioEvents } from './scenario.ts';
import { parseRuns, RunsFileError, type Run } from './runs.ts';
import { ServiceClient, ServiceError, type ServiceAddress } from './service_client.ts';
import { localKey, localUrl, SettingsError } from './settings.ts';

const USAGE = `usage: npm run demo [-- --file runs.json] [--url http://127.0.0.1:8080] [--org org_local] [--key sk_svc_…] [--limit N] [--at ISO-time]
  --file   agent runs: a list of {task_id, trial, reward, info, traj[]} with OpenAI-style messages; a small sample and some scenarios without it
  --limit  send the first N runs only
  --at     when the last run ended; the start of this hour (UTC) without it. The same runs with the same --at add nothing.`;

const SAMPLE = new URL('sample_runs.json', import.meta.url);
const HOUR_MS = 3_600_000;
/** Short answers of the help desk: one every 24 minutes of two days. */
const HELP_RUNS = 120;
const HELP_EVERY_MS = 24 * 60_000;
/** Runs sent concurrently; the events of one run are sent in sequence. */
const RUNS_AT_ONCE = 8;
/** Pause between two runs, milliseconds of their own time. */
const GAP_MS = 20_000;
const OUTLINE_LINES = 24;
/** Spans of the largest run that is printed as a tree. */
const READABLE_SPANS_MAX = 200;
const LOOKS_MAX = 3;
const LOOK_AGAIN_MS = 1000;

interface Options {
  address: ServiceAddress;
  file: URL | string;
  limit: number;
  at: number;
}

function readOptions(args: string[]): Options | null {
  const { values } = parseArgs({
    args,
    options: {
      file: { type: 'string' },
      url: { type: 'string' },
      org: { type: 'string' },
      key: { type: 'string' },
      limit: { type: 'string' },
      at: { type: 'string' },
      help: { type: 'boolean', short: 'h' },
    },
  });
  if (values.help === true) return null;
  const env = parseEnv(process.env);
  const limit = Number(values.limit ?? Infinity);
  if (!(limit >= 1)) throw new SettingsError(`--limit must be a number from 1; got ${values.limit ?? ''}`);
  const now = Date.now();
  const at = values.at === undefined ? now - (now % HOUR_MS) : Date.parse(values.at);
  if (Number.isNaN(at)) throw new SettingsError(`--at must be an ISO 8601 time; got ${values.at ?? ''}`);
  const key = values.key ?? env.SERVICE_BOOTSTRAP_API_KEY ?? localKey(env.SERVICE_DATA_DIR);
  const url = (
    values.url ??
    localUrl(env.SERVICE_DATA_DIR) ??
    `http://${env.SERVICE_HOST}:${env.SERVICE_PORT}`
  ).replace(/(?<!\/)\/+$/, '');
  return {
    address: { url, org: values.org ?? env.SERVICE_BOOTSTRAP_ORG_ID, key },
    file: values.file ?? SAMPLE,
    limit,
    at,
  };
}

/**
 * Places the runs in time one after the other, with the first run of the file as the newest, so
 * that a run's times do not depend on how many are sent. Returns them oldest first.
 */
function layOut(runs: readonly Run[], at: number, loadTag: string, withScenarios: boolean): RunEvents[] {
  const laid: RunEvents[] = [];
  const progress = startProgress('Preparing', runs.length);
  let end = at;
  for (const run of runs) {
    const plan = planRun(run, countTokens);
    const start = end - plan.duration_ms;
    laid.push(runEvents(run, plan, start, loadTag));
    end = start - GAP_MS;
    progress.set(laid.length);
  }
  progress.end();
  if (!withScenarios) return laid.reverse();
  for (const scenario of scenarios()) {
    laid.push(scenarioEvents(scenario, end, loadTag));
    end -= durationOf(scenario.root) + GAP_MS;
  }
  for (let index = 0; index < HELP_RUNS; index += 1)
    laid.push(scenarioEvents(helpDesk(index), at - (index + 1) * HELP_EVERY_MS, loadTag));
  for (const { scenario, ago_ms } of dailyRuns()) laid.push(scenarioEvents(scenario, at - ago_ms, loadTag));
  return laid.reverse();
}

async function send(client: ServiceClient, runs: readonly RunEvents[]): Promise<void> {
  const progress = startProgress('Sending  ', spansOf(runs));
  let sent = 0;
  const sendRun = async (run: RunEvents): Promise<void> => {
    for (const event of run.events) {
      await client.ingest(event.format, event.body);
      sent += Array.isArray(event.body['events']) ? event.body['events'].length : 1;
      progress.set(sent, client.retries === 0 ? '' : `(${client.retries} sent again)`);
    }
  };
  try {
    await inParallel(runs, RUNS_AT_ONCE, sendRun);
  } finally {
    progress.end();
  }
}

const spansOf = (runs: readonly RunEvents[]): number => runs.reduce((sum, run) => sum + run.spans, 0);

/** Returns the failed run with the most turns, which people would open first. */
function interesting(runs: readonly RunEvents[]): RunEvents | undefined {
  const readable = runs.filter((run) => run.spans <= READABLE_SPANS_MAX);
  const failed = readable.filter((run) => run.outcome !== 'success');
  return (failed.length > 0 ? failed : readable).sort((a, b) => b.llm_spans - a.llm_spans)[0];
}

/** Returns words to search for: the longest words of what the user of a run asked. */
function searchWords(run: RunEvents): string {
  const words = new Set(run.asked.toLowerCase().match(/[a-z]{5,}/g) ?? ['agent']);
  return [...words]
    .sort((a, b) => b.length - a.length)
    .slice(0, 3)
    .join(' ');
}

function whatToLookAt(
  { url, org, key }: ServiceAddress,
  runs: readonly RunEvents[],
  loadTag: string,
  tree: readonly string[],
): string {
  const run = interesting(runs);
  if (run === undefined) return '';
  const curl = (path: string): string =>
    `  curl -s -H 'Authorization: Bearer ${key}' -H 'X-Org-Id: ${org}' '${url}${path}'`;
  return [
    'One of them in the portal (log in with the link that npm start or npm run login prints):',
    `  ${url}/o/${org}/traces/${run.trace_id}`,
    'The runs, and those that failed:',
    curl(`/v1/traces?tags=${loadTag}&limit=20`),
    curl(`/v1/traces?tags=${loadTag}&outcome=error`),
    `One of them, as a tree and as a timeline:`,
    curl(`/v1/traces/${run.trace_id}/tree`),
    curl(`/v1/traces/${run.trace_id}/timeline`),
    '',
    ...tree.map((line) => `    ${line}`),
    '',
    'Search over prompts and responses, best first:',
    curl(`/v1/spans/search?q=${encodeURIComponent(searchWords(run))}&limit=5`),
  ].join('\n');
}

/** Returns a run's tree as the service stored it, as lines. */
async function treeOf(client: ServiceClient, run: RunEvents | undefined): Promise<string[]> {
  if (run === undefined) return [];
  const { data } = await client.get(`/v1/traces/${run.trace_id}/tree`);
  return outline(z.object({ spans: z.array(outlineSpan) }).parse(data).spans, OUTLINE_LINES);
}

const thousands = (value: number): string => value.toLocaleString('en-US');

/**
 * Reads everything back. A trace may be listed some milliseconds before its last spans, so
 * differences are checked again.
 */
async function readBack(
  client: ServiceClient,
  runs: readonly RunEvents[],
  sent: Totals,
  loadTag: string,
): Promise<{ totals: Totals; cost_usd: number; problems: string[] }> {
  const wanted = new Set(runs.map((run) => run.trace_id));
  for (let look = 1; ; look += 1) {
    const items = (await listTagged(client, loadTag)).filter((item) => wanted.has(item.trace_id));
    const totals = await readTotals(client, loadTag, items);
    const cost_usd = items.reduce((sum, item) => sum + item.cost_usd, 0);
    const reading = startProgress('Reading  ', Math.min(items.length, OUTLINES_MAX));
    const problems = [...compareTotals(sent, totals), ...(await compareOutlines(client, items, reading))];
    reading.end();
    if (problems.length === 0 || look === LOOKS_MAX) return { totals, cost_usd, problems };
    await new Promise((resolve) => setTimeout(resolve, LOOK_AGAIN_MS));
  }
}

async function verify(client: ServiceClient, runs: readonly RunEvents[], loadTag: string): Promise<boolean> {
  const sent = expectedTotals(runs);
  const waiting = startProgress('Visible  ', runs.length);
  await waitForTraces(client, loadTag, runs.length, waiting);
  waiting.end();
  const { totals, cost_usd, problems } = await readBack(client, runs, sent, loadTag);
  console.log(
    `\n${thousands(totals.traces)} traces (${thousands(totals.failed)} failed), ${thousands(totals.spans)} spans: ${thousands(totals.llm_spans)} model calls, ${thousands(totals.tool_spans)} tool calls, ` +
      `${thousands(totals.traces)} roots.\n${thousands(totals.input_tokens)} input and ${thousands(totals.output_tokens)} output tokens, $${cost_usd.toFixed(6)}.`,
  );
  if (problems.length === 0) console.log('Everything is there, and its sums match what was sent.\n');
  else
    console.error(
      `\n${problems.length} differences between what was sent and what the service shows:\n${problems
        .slice(0, 20)
        .map((line) => `  ${line}`)
        .join('\n')}\n`,
    );
  return problems.length === 0;
}

async function main(): Promise<number> {
  const options = readOptions(process.argv.slice(2));
  if (options === null) {
    console.log(USAGE);
    return 0;
  }
  const text = readFileSync(options.file, 'utf8');
  const client = new ServiceClient(options.address);
  const runs = parseRuns(text).slice(0, options.limit);
  // Runs of the same file at the same time share a tag, which selects exactly them in the list.
  const loadTag = `demo-${createHash('sha256').update(text).update(String(options.at)).digest('hex').slice(0, 8)}`;
  const before = await countTagged(client, loadTag);
  const isWhole = options.file === SAMPLE && options.limit === Infinity;
  const laid = layOut(runs, options.at, loadTag, isWhole);
  console.log(
    `${thousands(laid.length)} agent runs that ended at ${new Date(options.at).toISOString()} to ${options.address.url}, org ${options.address.org}.`,
  );
  const registry = isWhole ? await sendRegistry(client) : null;
  const began = performance.now();
  await send(client, laid);
  const seconds = (performance.now() - began) / 1000;
  console.log(`${thousands(spansOf(laid))} events sent in ${seconds.toFixed(1)} s.`);
  const good = await verify(client, laid, loadTag);
  const asked = laid.filter(({ name }) => name === HELP_RUN).map(({ trace_id }) => trace_id);
  if (registry !== null) console.log((await runEvals(client, registry, asked)).join('\n'), '\n');
  if (before > 0)
    console.log(
      `${thousands(before)} of these traces were here before: the same events add nothing. --at gives the runs another time.\n`,
    );
  console.log(whatToLookAt(options.address, laid, loadTag, await treeOf(client, interesting(laid))));
  return good ? 0 : 1;
}

function explain(error: unknown): string {
  if (error instanceof RunsFileError) return `The file of runs ${error.message}`;
  if (error instanceof ServiceError && error.status === 0) return `${error.message}\nIs it running? npm start`;
  if (error instanceof ServiceError || error instanceof SettingsError || error instanceof EnvError)
    return error.message;
  if (
    error instanceof Error &&
    'code' in error &&
    (error.code === 'ENOENT' || String(error.code).startsWith('ERR_PARSE_ARGS'))
  )
    return `${error.message}\n${USAGE}`;
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

try {
  process.exitCode = await main();
} catch (error) {
  console.error(explain(error));
  process.exitCode = 1;
}
