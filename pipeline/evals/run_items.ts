// Runs the items of a chunk of a dataset run: each is sent to the model, the call is recorded as a
// trace, and its answer is judged. It takes the chunk's items and stores a row for each.
// Guarantees: an item that was answered is not sent again (RecordedCalls), and one that has a row
// is not judged again. An item that cannot be sent has a row with the verdict `error` and no trace.
import { type ChatMessage, UpstreamFailed } from '../../ops/platform/llm/upstream.ts';
import type { DatasetItem } from '../../schemas/records/dataset.ts';
import type { EvalRecord } from '../../schemas/records/eval.ts';
import type { JudgeRecord } from '../../schemas/records/judge.ts';
import type { PromptRecord } from '../../schemas/records/prompt.ts';
import { scoredTraces, type ScoreRow } from '../../sql/stores/judge_scores.ts';
import { itemMessages } from '../domain/evals/dataset_items.ts';
import { spansOf } from '../domain/decode/decode.ts';
import type { SpanDeps } from '../domain/decode/span.ts';
import { chunkRange } from '../domain/evals/chunks.ts';
import type { JudgedTrace } from '../domain/judging/judged_trace.ts';
import { picoToDecimal } from '../domain/pricing/money.ts';
import type { Redaction } from '../domain/pii/pii.ts';
import type { Span } from '../domain/traces/span.ts';
import type { RecordedCalls } from '../judging/llm_recorded_calls.ts';
import { EvalFailed } from './records.ts';
import { type Judgement, scoreRow } from './rows.ts';
import { failIfAllRefused, judgeFor, type JudgeTrace, type TraceScorerOptions } from './score_traces.ts';
import { allEnded } from './settled.ts';
import type { ScoreChunk } from './worker.ts';
import { hex16 } from '../domain/traces/ids.ts';

/** Timeout of each attempt of a call. */
const CALL_TIMEOUT_MS = 120_000;

export interface ItemRunnerOptions extends TraceScorerOptions {
  /** null when the worker has no upstream. */
  calls: Pick<RecordedCalls, 'call'> | null;
  /** Dependencies of the decoder that reads an answer as landing will. */
  spans: SpanDeps;
}

/** What all items of a chunk share. */
interface Run {
  record: EvalRecord;
  dataset: NonNullable<EvalRecord['dataset']>;
  calls: Pick<RecordedCalls, 'call'>;
  judge: JudgeRecord;
  prompt: PromptRecord | null;
  judgeTrace: JudgeTrace;
  signal: AbortSignal;
}

interface Ran {
  row: ScoreRow;
  refused: string | null;
}

export function createItemRunner(options: ItemRunnerOptions): ScoreChunk {
  const { records, clickhouse, store, calls } = options;
  return async (record, chunk, signal) => {
    const { dataset } = record;
    if (dataset === null) throw new EvalFailed('it is no run of a dataset');
    if (calls === null) throw new EvalFailed('this service has no upstream for models');
    const { from, to } = chunkRange(record.progress, chunk);
    const [judge, prompt, items] = await Promise.all([
      records.judge(record),
      records.prompt(record),
      records.items(record.org_id, dataset, from, to),
    ]);
    const run: Run = { record, dataset, calls, judge, prompt, judgeTrace: judgeFor(options, record, judge), signal };
    const ids = items.map((_, i) => itemTrace(record, from + i));
    const scored = await scoredTraces(clickhouse, record, ids);
    const left = items.flatMap((item, i) => (scored.has(ids[i] ?? '') ? [] : [{ item, item_index: from + i }]));
    const { results, failure } = await allEnded(
      left.map(({ item, item_index }) => runItem(options, run, item, item_index)),
    );
    await store(results.map(({ row }) => row));
    if (failure !== null) throw failure.error;
    const refusals = results.flatMap(({ refused }) => refused ?? []);
    if (refusals.length === results.length) await failIfAllRefused(clickhouse, record, refusals);
  };
}

async function runItem(
  { spans, now }: ItemRunnerOptions,
  run: Run,
  item: DatasetItem,
  item_index: number,
): Promise<Ran> {
  const { record, judge, judgeTrace, signal } = run;
  const without = (reason: string, refused: boolean): Ran => {
    const nowhere = { trace_id: '', agent_id: '', started_at: 0 };
    const row = scoreRow(record, judge, nowhere, { score: null, reason }, { item_index, now: now() });
    return { row, refused: refused ? reason : null };
  };
  const messages = itemMessages(item, run.prompt?.template ?? null);
  if (typeof messages === 'string') return without(messages, false);
  let answer: JudgedTrace;
  try {
    answer = await ask(spans, run, item, { item_index, messages: messages as ChatMessage[] });
  } catch (error) {
    // The chunk is retried for errors that a later attempt may not have. An answer that cannot be
    // read was requested twice already.
    if (!(error instanceof UpstreamFailed) || error.kind === 'unavailable') throw error;
    return without(`the model could not be asked: ${error.message}`, error.kind === 'refused');
  }
  const { input, expected } = item;
  const judgement: Judgement = await judgeTrace(answer, signal, { item_index, input, expected: expected ?? undefined });
  const row = scoreRow(record, judge, answer, judgement, { item_index, now: now() });
  return { row, refused: judgement.refused === true ? judgement.reason : null };
}

/** Sends an item to the model. Resolves with the answer as judges see it, once it is recorded. */
async function ask(
  spans: SpanDeps,
  { record, dataset, calls, prompt, signal }: Run,
  { input }: DatasetItem,
  { item_index, messages }: { item_index: number; messages: ChatMessage[] },
): Promise<JudgedTrace> {
  const { org_id, eval_id } = record;
  const named =
    prompt === null ? {} : { prompt_name: prompt.name, prompt_version: prompt.version, prompt_variables: input };
  const { event } = await calls.call(
    {
      org_id,
      key: itemKey(record, item_index),
      request: { model: dataset.model, messages },
      trace_id: itemTrace(record, item_index),
      span_id: `spn_${hex16(`${itemKey(record, item_index)}\nspan`)}`,
      // Comparing two runs needs every answer, so sampling drops none of them.
      attributes: { dataset_id: dataset.dataset_id, dataset_run: eval_id, item_index, force_trace: true, ...named },
      timeoutMs: CALL_TIMEOUT_MS,
    },
    signal,
  );
  const read = (redaction: Redaction | null) => spansOf(spans, event, JSON.parse(event.body), redaction);
  const redactor = spans.redactorOf(org_id);
  const found = redactor === null ? read(null) : await redactor.redact(read);
  const span = typeof found === 'string' ? undefined : found[0];
  if (span === undefined)
    throw new Error(`the record of an answer is no event: ${typeof found === 'string' ? found : 'no span'}`);
  return judgedSpan(span);
}

/** Returns a trace of one span as judges see it. */
function judgedSpan(span: Span): JudgedTrace {
  const { org_id, trace_id, agent_id, name, model, outcome, source_format, tags, started_at, ended_at } = span;
  return {
    org_id,
    trace_id,
    agent_id,
    name,
    model,
    outcome,
    source_format,
    tags,
    started_at,
    duration_ms: Math.max(0, ended_at - started_at),
    input_tokens: span.input_tokens,
    output_tokens: span.output_tokens,
    cost_usd: Number(picoToDecimal(span.cost_pico_usd)),
    prompt: span.prompt,
    response: span.response,
    attributes: span.attributes,
  };
}

/** Returns the key of an item of a run, the same in every process and at every repetition. */
const itemKey = ({ org_id, eval_id }: EvalRecord, item_index: number): string =>
  ['dataset', org_id, eval_id, String(item_index)].join('\n');
const itemTrace = (record: EvalRecord, item_index: number): string => `trc_${hex16(itemKey(record, item_index))}`;
