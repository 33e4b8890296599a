// Judges the traces that a batch completes. It takes traces with what memory holds of them, and
// returns what their judges say of each: rows of judge_scores, scores for trace.completed, breaches
// to publish, and tasks for LLM judges. It writes nothing. Guarantees: the judgements of a former
// owner of the partition stand, so that no trace is scored twice. Judging yields to timers every
// TURN_MS, and an organization whose judges use too much of the worker's time gets errors instead.
import { textsOfMessages } from '../domain/conversation/span_messages.ts';
import type { JudgingTask } from '../../schemas/codec.ts';
import type { Breach, JudgeRecord } from '../../schemas/records/judge.ts';
import {
  addToDraft,
  emptyDraft,
  findingOf,
  type FoundMessages,
  type FoundText,
  judgedTraceOf,
  type DraftFinding,
  type JudgedDraft,
} from '../domain/judging/judged_draft.ts';
import type { JudgedTrace } from '../domain/judging/judged_trace.ts';
import { hex16 } from '../domain/traces/ids.ts';
import { type Runner, type RuleOnTexts, runRules, TRACE_STEPS_MAX } from '../domain/patterns/bounds.ts';
import {
  breachesOf,
  isJudgeCall,
  judge,
  judgementOf,
  judgesFor,
  notJudged,
  scoresByName,
  type Judgement,
  type OrgJudges,
  type RuleJudge,
} from './rule_judges.ts';
import type { LiveTaskThrottle } from './live_task_throttle.ts';
import type { CompleteTrace } from './rule_inputs.ts';
import {
  placeKeyOf,
  READ_TRACES_MAX,
  traceKeyOf,
  type JudgedStore,
  type PlaceRef,
  type StoredRef,
  type StoredTexts,
} from './rule_inputs_store.ts';
import { inParallel } from '../../ops/platform/in_parallel.ts';
import type { OrgTime } from '../../ops/platform/org_time.ts';

/** Longest time without a turn for timers. */
const TURN_MS = 20;
/**
 * Chunks of traces whose texts are in memory together. After a takeover, many traces are read back,
 * and their statements wait for the store longer than they run.
 */
const READS_AT_ONCE = 2;
const SPENT = 'the judges of the org took too long before';

export interface ScoringDeps {
  judgesOf(org_id: string): OrgJudges | null;
  /** Reads wait while the store is unavailable. */
  store: JudgedStore;
  /** Time of this worker that the judges of each organization have used. */
  time: OrgTime;
  /** Runs rules that would take long in this thread. */
  runner: Runner;
  throttle: LiveTaskThrottle;
  now(): number;
  yield(): Promise<void>;
}

/** A judged trace. */
export interface ScoredTrace {
  trace: CompleteTrace;
  /** All scores of rules, in the order of the judges. */
  scores: Record<string, number>;
  /** Judgements that are not in the store yet. */
  fresh: Judgement[];
  breaches: Breach[];
  tasks: JudgingTask[];
}

interface Judged {
  trace: CompleteTrace;
  judges: OrgJudges;
}

/**
 * Judges complete traces, and leaves out those that no judge is for. Traces that memory holds are
 * judged while the others are read.
 */
export async function scoreTraces(deps: ScoringDeps, traces: readonly CompleteTrace[]): Promise<ScoredTrace[]> {
  const scored: ScoredTrace[] = [];
  const judged = traces.flatMap((trace): Judged[] => {
    const judges = deps.judgesOf(trace.state.org_id);
    return judges === null ? [] : [{ trace, judges }];
  });
  const isRead = ({ trace }: Judged): boolean => trace.stored_through > 0 || trace.restored;
  const chunks = [judged.filter((one) => !isRead(one)), ...inChunks(judged.filter(isRead))];
  await inParallel(chunks, READS_AT_ONCE, async (chunk) => {
    const inputs = await inputsOf(deps.store, chunk);
    let turn = performance.now();
    for (const [index, { trace, judges }] of chunk.entries()) {
      const input = inputs[index];
      if (input === undefined || isJudgeCall(input.judged)) continue;
      scored.push(await scoreOne(deps, trace, judges, input));
      if (performance.now() - turn < TURN_MS) continue;
      await deps.yield();
      turn = performance.now();
    }
  });
  return scored;
}

function inChunks(judged: readonly Judged[]): Judged[][] {
  const chunks: Judged[][] = [];
  for (let at = 0; at < judged.length; at += READ_TRACES_MAX) chunks.push(judged.slice(at, at + READ_TRACES_MAX));
  return chunks;
}

/** What the judges of a trace see, and what they said before. */
interface Input {
  judged: JudgedTrace;
  known: readonly Judgement[];
}

async function scoreOne(
  deps: ScoringDeps,
  trace: CompleteTrace,
  judges: OrgJudges,
  { judged, known }: Input,
): Promise<ScoredTrace> {
  const { org_id, trace_id } = judged;
  // Of a trace that sampling thinned, the store has no texts: rules that read texts would judge
  // nothing.
  const { rules, llm } = judgesFor(judges, judged, trace.stored_through > 0 && !trace.state.sampled);
  const said = new Map(known.map((judgement) => [judgement.judge_id, judgement]));
  const fresh: Judgement[] = [];
  let began = performance.now();
  let left = TRACE_STEPS_MAX;
  const pay = (steps: number): boolean => {
    if (steps > left) return false;
    left -= steps;
    return true;
  };
  const costly: (RuleOnTexts & { judge: RuleJudge; place: number })[] = [];
  for (const rule of rules) {
    if (said.has(rule.record.judge_id)) continue;
    const judgement = deps.time.isSpent(org_id, began) ? notJudged(rule, SPENT) : judge(rule, judged, pay);
    if ('texts' in judgement)
      costly.push({ judge: rule, rule: rule.rule, texts: judgement.texts, place: fresh.length });
    // Keeps the place of a rule that runs elsewhere.
    fresh.push('texts' in judgement ? notJudged(rule, '') : judgement);
    const now = performance.now();
    if (now - began < TURN_MS) continue;
    deps.time.spend(org_id, now - began, now);
    await deps.yield();
    began = performance.now();
  }
  const ended = performance.now();
  deps.time.spend(org_id, ended - began, ended);
  const results = costly.length === 0 ? [] : await runRules(deps.runner, org_id, costly);
  for (const [index, result] of results.entries()) {
    const asked = costly[index];
    if (asked !== undefined) fresh[asked.place] = judgementOf(asked.judge, result);
  }
  const all = [...known, ...fresh];
  return {
    trace,
    scores: scoresByName(all),
    fresh,
    breaches: breachesOf(rules, trace_id, all),
    tasks: llm
      .filter((record) => deps.throttle.admits(record, judged.agent_id, deps.now()))
      .map((record) => taskOf(record, judged, deps.now())),
  };
}

/**
 * Returns the task of a trace and an LLM judge. Its id is the same however often the trace
 * completes, so it is judged once.
 */
function taskOf(
  { judge_id, version }: JudgeRecord,
  { org_id, trace_id, agent_id }: JudgedTrace,
  now: number,
): JudgingTask {
  return {
    task_id: `task_${hex16(`live\n${org_id}\n${judge_id}\n${trace_id}`)}`,
    kind: 'live',
    org_id,
    judge_id,
    judge_version: version,
    agent_id,
    eval_id: '',
    chunk: 0,
    trace_ids: [trace_id],
    created_at: now,
  };
}

async function inputsOf(store: JudgedStore, judged: readonly Judged[]): Promise<Input[]> {
  const refs = judged.flatMap(({ trace }) => (trace.stored_through > 0 ? [refOf(trace)] : []));
  const restored = judged.flatMap(({ trace }) => (trace.restored ? [refOf(trace)] : []));
  const [spans, judgements] = await Promise.all([
    refs.length === 0 ? null : store.spans(refs),
    restored.length === 0 ? null : store.judgements(restored),
  ]);
  const findings = judged.map(({ trace }) => {
    const draft: JudgedDraft = trace.draft ?? emptyDraft();
    for (const span of spans?.get(traceKeyOf(trace.state)) ?? []) addToDraft(draft, span);
    return findingOf(draft);
  });
  const places = findings.flatMap((finding, index) => {
    const state = judged[index]?.trace.state;
    return state === undefined ? [] : storedPlaces(finding, state);
  });
  const texts = places.length === 0 ? new Map<string, StoredTexts>() : await store.texts(refs, places);
  return findings.flatMap((finding, index) => {
    const trace = judged[index]?.trace;
    if (trace === undefined) return [];
    const known = judgements?.get(traceKeyOf(trace.state)) ?? [];
    return [{ judged: judgedTraceOf(trace.state, { ...finding, ...filledIn(finding, trace.state, texts) }), known }];
  });
}

const refOf = ({ partition, state, stored_through }: CompleteTrace): StoredRef => ({
  partition,
  org_id: state.org_id,
  trace_id: state.trace_id,
  through: stored_through,
  started_at: state.started_at,
  ended_at: state.ended_at,
});

function storedPlaces(
  { prompt, response, attributes, asked, answered }: DraftFinding,
  { org_id, trace_id }: { org_id: string; trace_id: string },
): PlaceRef[] {
  const messages = [...asked, ...answered].flatMap((message) => [message.prompt, message.response]);
  return [prompt, response, attributes, ...messages].flatMap((part) =>
    typeof part === 'object' && 'stored' in part ? [{ org_id, trace_id, place: part.stored }] : [],
  );
}

function filledIn(
  { prompt, response, attributes, asked, answered }: DraftFinding,
  trace: { org_id: string; trace_id: string },
  texts: ReadonlyMap<string, StoredTexts>,
): Pick<JudgedTrace, 'prompt' | 'response' | 'attributes'> {
  const textOf = (text: FoundText, side: 'prompt' | 'response'): string =>
    typeof text === 'string' ? text : (texts.get(placeKeyOf(trace, text.stored))?.[side] ?? '');
  const said = (messages: FoundMessages, side: 'prompt' | 'response'): string => {
    const whole = messages.map((message) => ({
      ...message,
      prompt: textOf(message.prompt, 'prompt'),
      response: textOf(message.response, 'response'),
    }));
    return textsOfMessages(whole).values().next().value?.[side] ?? '';
  };
  return {
    // The messages of a model call precede the texts of other spans.
    prompt: said(asked, 'prompt') || textOf(prompt, 'prompt'),
    response: said(answered, 'response') || textOf(response, 'response'),
    attributes:
      'known' in attributes ? attributes.known : (texts.get(placeKeyOf(trace, attributes.stored))?.attributes ?? {}),
  };
}
