// Guards: deterministic judges that the gateway applies to a prompt before its call and to a response
// after it. Takes the texts of a call; returns them with matches redacted, or the judge that blocks
// them. A guard that cannot decide within GUARD_STEPS_MAX, or whose redaction leaves a match, blocks.
import type { JudgeRecord } from '../../../schemas/records/judge.ts';
import { verdictOf } from '../../../schemas/records/judge.ts';
import { compileRule, inScope, type RuleScorer } from '../../../pipeline/domain/judging/rules.ts';
import { compileLinear } from '../../../pipeline/domain/patterns/linear_regex.ts';
import { ApiError } from '../../http/errors.ts';
import type { GatewayCall } from './call.ts';
import { mapStrings } from './json_strings.ts';

/** Steps of a rule on one text, some 5 ns each for usual patterns. */
const GUARD_STEPS_MAX = 20_000_000;
const REDACTED = '[REDACTED]';
const SOURCE_FORMATS = { chat: 'chatcompletion', messages: 'messages', responses: 'gateway', embeddings: 'gateway' };
/** Members of a request and of an answer that hold the texts of the conversation. */
const PROMPT_MEMBERS = ['messages', 'system', 'input', 'instructions'];
const RESPONSE_MEMBERS = ['choices', 'content', 'output', 'output_text'];

export type Stage = 'prompt' | 'response';

/** A guard that acted on a call, as its record shows it. */
export interface GuardNote {
  judge_id: string;
  name: string;
  action: 'block' | 'redact';
  field: Stage;
  reason: string;
}

export interface Guarded {
  /** JSON text with the redactions. */
  text: string;
  notes: readonly GuardNote[];
  /** The guard that blocks; null for none. */
  blocked: GuardNote | null;
}

interface CompiledGuard {
  scorer: RuleScorer;
  /** Returns a text without its matches. */
  redact: (text: string) => string;
}

const compiled: Readonly<Record<Stage, WeakMap<JudgeRecord, CompiledGuard>>> = {
  prompt: new WeakMap(),
  response: new WeakMap(),
};

function compiledOf(judge: JudgeRecord, stage: Stage): CompiledGuard | null {
  const { rule } = judge;
  if (rule === null) return null;
  let guard = compiled[stage].get(judge);
  if (guard === undefined) {
    const pattern = rule.type === 'regex_absent' ? compileLinear(rule.pattern ?? '') : null;
    const value = rule.value ?? '';
    guard = {
      scorer: compileRule({ ...rule, fields: [stage] }),
      redact: (text) =>
        pattern !== null
          ? pattern.replace(text, () => REDACTED)
          : value === ''
            ? text
            : text.replaceAll(value, REDACTED),
    };
    compiled[stage].set(judge, guard);
  }
  return guard;
}

/** Returns the judges that guard a stage of a call. */
export function guardsOf(judges: readonly JudgeRecord[], stage: Stage, call: GatewayCall): JudgeRecord[] {
  const trace = {
    source_format: SOURCE_FORMATS[call.operation],
    agent_id: call.labels.agent_id ?? '',
    tags: [...call.labels.tags],
  };
  return judges.filter(
    ({ guard, enabled, rule, scope }) =>
      guard !== undefined && enabled && rule?.fields.includes(stage) === true && inScope(scope, trace),
  );
}

/**
 * Applies guards to the texts in a JSON object.
 * @param canRedact false where the answer is on its way in pieces, so that a match blocks it
 */
export function applyGuards(judges: readonly JudgeRecord[], stage: Stage, json: string, canRedact: boolean): Guarded {
  const members = stage === 'prompt' ? PROMPT_MEMBERS : RESPONSE_MEMBERS;
  const notes: GuardNote[] = [];
  let text = json;
  for (const judge of judges) {
    const guard = compiledOf(judge, stage);
    if (guard === null) continue;
    const reason = problemOf(judge, guard, textsOf(text, members));
    if (reason === null) continue;
    const note = { judge_id: judge.judge_id, name: judge.name, field: stage, reason };
    if (judge.guard === 'redact' && canRedact) {
      const redacted = mapStrings(text, members, guard.redact);
      if (problemOf(judge, guard, textsOf(redacted, members)) === null) {
        text = redacted;
        notes.push({ ...note, action: 'redact' });
        continue;
      }
    }
    const blocked = { ...note, action: 'block' as const };
    return { text, notes: [...notes, blocked], blocked };
  }
  return { text, notes, blocked: null };
}

/** Returns why a text fails a guard; null where it passes. */
function problemOf({ threshold }: JudgeRecord, { scorer }: CompiledGuard, text: string): string | null {
  if (scorer.steps([text]) > GUARD_STEPS_MAX) return 'the text is too long for the rule';
  const { score, reason } = scorer.ofTexts([text]);
  return verdictOf(score, threshold) === 'fail' ? reason : null;
}

function textsOf(json: string, members: readonly string[]): string {
  const texts: string[] = [];
  mapStrings(json, members, (text) => {
    texts.push(text);
    return text;
  });
  return texts.join('\n');
}

/** Returns the error of a blocked call. */
export const blockedBy = ({ name, field, reason }: GuardNote): ApiError =>
  new ApiError('forbidden', `The judge ${JSON.stringify(name)} blocks the ${field} of this call: ${reason}.`);
