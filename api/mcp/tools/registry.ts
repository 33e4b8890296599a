// Tools that read prompts and evaluations.
import { z } from 'zod';
import type { PromptItem } from '../../control/prompts/schema.ts';
import { ApiError } from '../../http/errors.ts';
import { Digest, type ToolAnswer } from '../digest.ts';
import { clip } from '../tokens.ts';
import { args, defineTool, limit, maxChars, queryOf, type ToolCall, traceId } from '../tool.ts';

const PROMPT_BUDGET = 4000;
const EVALUATIONS_BUDGET = 2000;
const NAME_CHARS = 100;
const REASON_CHARS = 300;
const VERSIONS_SHOWN = 10;
/** Lines of two versions that are compared; the comparison is quadratic in them. */
const DIFF_LINES_MAX = 800;
const text = z.string().min(1).max(256);

export const getPrompt = defineTool({
  name: 'get_prompt',
  title: 'Get a prompt',
  description:
    'Without name: lists prompts. With name: template of the newest version, or of version or label. diff_with: lines that differ from another version.',
  routes: ['listPrompts', 'getPrompt'],
  input: z.object({
    name: text.optional(),
    version: text.optional(),
    label: text.optional(),
    diff_with: text.optional(),
    max_chars: maxChars(16_000),
  }),
  run: async ({ name, version, label, diff_with, max_chars }, call) => {
    if (name === undefined) return listPrompts(max_chars, call);
    const { data: prompt } = await call.route('getPrompt', {
      params: { name },
      query: queryOf({ version, label }),
    });
    const digest = new Digest(PROMPT_BUDGET, max_chars)
      .head(
        `Prompt version ${prompt.version}, ${prompt.type}, labels ${prompt.labels.join(' ')}; versions ${prompt.versions
          .slice(0, VERSIONS_SHOWN)
          .map((one) => one.version)
          .join(' ')}${prompt.versions.length > VERSIONS_SHOWN ? ' …' : ''}.`,
      )
      .info({
        version: prompt.version,
        labels: prompt.labels,
        type: prompt.type,
        model: clip(prompt.model, NAME_CHARS),
      });
    const template = templateOf(prompt);
    if (diff_with === undefined)
      return addText(digest, template, 'get_prompt has no more room: GET /v1/prompts/{name} has it all');
    const { data: other } = await call.route('getPrompt', {
      params: { name },
      query: { version: diff_with },
    });
    digest.head(`Lines with - are of version ${other.version}, lines with + of version ${prompt.version}.`);
    return addText(digest, diffOf(templateOf(other), template), 'the difference is longer; read both versions');
  },
});

const templateOf = ({ template }: PromptItem): string =>
  typeof template === 'string' ? template : JSON.stringify(template, null, 1);

function addText(digest: Digest, whole: string, more: string): ToolAnswer {
  const shown = digest.fitting(whole);
  digest.row(shown, { text: shown });
  return digest.answer(shown.length < whole.length ? more : null);
}

async function listPrompts(max_chars: number, call: ToolCall): Promise<ToolAnswer> {
  const { data, meta } = await call.route('listPrompts', { query: { limit: '100' } });
  const digest = new Digest(PROMPT_BUDGET, max_chars).head(`${String(meta['total'])} prompts.`);
  for (const { name, version, type, labels, model } of data) {
    const shown = clip(name, NAME_CHARS);
    const line = `- ${shown} · version ${version} · ${type} · ${labels.join(' ')} · ${clip(model, NAME_CHARS)}`;
    if (!digest.row(line, { name: shown, version, type, labels })) break;
  }
  return digest.answer(data.length === 0 ? null : `get_prompt ${args({ name: data[0]?.name })}`);
}

/** Returns the lines that differ between two texts, with - and + before them. */
function diffOf(before: string, after: string): string {
  const [a, b] = [before.split('\n').slice(0, DIFF_LINES_MAX), after.split('\n').slice(0, DIFF_LINES_MAX)];
  // same[i][j] is the length of the longest common sequence of a from i on and b from j on.
  const width = b.length + 1;
  const same = new Uint16Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i--)
    for (let j = b.length - 1; j >= 0; j--)
      same[i * width + j] =
        a[i] === b[j]
          ? (same[(i + 1) * width + j + 1] ?? 0) + 1
          : Math.max(same[(i + 1) * width + j] ?? 0, same[i * width + j + 1] ?? 0);
  const lines: string[] = [];
  for (let [i, j] = [0, 0]; i < a.length || j < b.length;) {
    if (i < a.length && j < b.length && a[i] === b[j]) [i, j] = [i + 1, j + 1];
    else if (j >= b.length || (i < a.length && (same[(i + 1) * width + j] ?? 0) >= (same[i * width + j + 1] ?? 0)))
      lines.push(`- ${a[i++] ?? ''}`);
    else lines.push(`+ ${b[j++] ?? ''}`);
  }
  return lines.length === 0 ? 'The templates are the same.' : lines.join('\n');
}

export const getEvaluations = defineTool({
  name: 'get_evaluations',
  title: 'Get evaluations',
  description: 'Scores of a trace, statistics of an eval, or live scores of a judge; give exactly one id.',
  routes: ['listScores', 'getEval', 'listLiveScores', 'getJudgeStats'],
  input: z.object({
    trace_id: traceId.optional(),
    eval_id: text.optional(),
    judge_id: text.optional(),
    verdict: z.enum(['pass', 'warn', 'fail', 'error']).optional(),
    limit: limit(20, 100),
    max_chars: maxChars(8000),
  }),
  run: async ({ trace_id, eval_id, judge_id, verdict, limit: rows, max_chars }, call) => {
    const digest = new Digest(EVALUATIONS_BUDGET, max_chars);
    if ([trace_id, eval_id, judge_id].filter((id) => id !== undefined).length !== 1)
      throw new ApiError('invalid_request', 'trace_id: give exactly one of trace_id, eval_id and judge_id');
    if (trace_id !== undefined) return scoresOfTrace(digest, { trace_id, verdict, rows }, call);
    if (eval_id !== undefined) return statsOfEval(digest, eval_id, call);
    return scoresOfJudge(digest, { judge_id: judge_id ?? '', verdict, rows }, call);
  },
});

interface Wanted {
  verdict: string | undefined;
  rows: number;
}

async function scoresOfTrace(
  digest: Digest,
  { trace_id, verdict, rows }: Wanted & { trace_id: string },
  call: ToolCall,
): Promise<ToolAnswer> {
  const { data, meta } = await call.route('listScores', { query: { trace_id, limit: '200' } });
  const found = data.filter((score) => verdict === undefined || score.verdict === verdict);
  digest.head(`${Number(meta['total'] ?? found.length)} scores of ${trace_id}.`);
  for (const score of found.slice(0, rows)) {
    const { source, span_id, created_at } = score;
    const [name, comment] = [clip(score.name, NAME_CHARS), clip(score.comment, REASON_CHARS)];
    const value = typeof score.value === 'string' ? clip(score.value, NAME_CHARS) : score.value;
    const line = `- ${name}: ${String(value)}${score.verdict === null ? '' : ` (${score.verdict})`} · ${source} · ${span_id ?? 'trace'} · ${created_at} ${comment}`;
    if (!digest.row(line, { name, value, verdict: score.verdict, source, span_id, comment, created_at })) break;
  }
  return digest.answer(
    digest.rows < found.length ? `get_evaluations ${args({ trace_id, verdict: 'fail' })} narrows them` : null,
  );
}

async function statsOfEval(digest: Digest, eval_id: string, call: ToolCall): Promise<ToolAnswer> {
  const { data } = await call.route('getEval', { params: { eval_id } });
  const { status, progress, stats, judge_id, judge_version, started_at, ended_at } = data;
  const model = clip(data.model, NAME_CHARS);
  const line = `- ${eval_id} · judge ${judge_id} version ${judge_version} · ${status} · ${progress.done} of ${progress.total} · ${JSON.stringify(stats)} ${model} ${clip(data.error, REASON_CHARS)}`;
  digest
    .head('Eval.')
    .row(line, { eval_id, judge_id, judge_version, status, progress, stats, model, started_at, ended_at });
  return digest.answer(
    `GET /v1/evals/${eval_id}/scores has a line for each trace; get_evaluations ${args({ judge_id })} has live scores`,
  );
}

async function scoresOfJudge(
  digest: Digest,
  { judge_id, verdict, rows }: Wanted & { judge_id: string },
  call: ToolCall,
): Promise<ToolAnswer> {
  const params = { judge_id };
  const [{ data: stats }, { data }] = await Promise.all([
    call.route('getJudgeStats', { params }),
    call.route('listLiveScores', { params, query: queryOf({ verdict, limit: rows }) }),
  ]);
  const { total, passed, warned, failed, errors, mean_score, days } = stats;
  digest
    .head(
      `In ${days} days ${total} judgements: ${passed} pass, ${warned} warn, ${failed} fail, ${errors} errors; mean ${mean_score ?? 'none'}.`,
    )
    .info({ total, passed, warned, failed, errors, mean_score, days });
  for (const { trace_id, score, verdict: given, reason, scored_at } of data) {
    const why = clip(reason, REASON_CHARS);
    const line = `- ${trace_id} · ${given} · ${score ?? 'no score'} · ${scored_at} · ${why}`;
    if (!digest.row(line, { trace_id, verdict: given, score, reason: why, scored_at })) break;
  }
  const [first] = data;
  return digest.answer(
    first === undefined ? null : `get_trace ${args({ trace_id: first.trace_id, view: 'messages' })}`,
  );
}
