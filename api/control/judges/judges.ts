// Creates, lists, gets, updates and disables judges. A judge that can be stored can be run: its
// rule is compiled here the way the pipeline compiles it.
import { randomBytes } from 'node:crypto';
import { compileRule, PARAMETER_OF, READS_FIELDS, RuleError } from '../../../pipeline/domain/judging/rules.ts';
import type { JudgeRecord, JudgeRubric, JudgeRule } from '../../../schemas/records/judge.ts';
import { fromTo } from '../../http/changes.ts';
import { ApiError, describeIssues } from '../../http/errors.ts';
import { type CursorMeta, cursorPage, type PageQuery } from '../../http/list_pages.ts';
import { type PageMeta, pageMetaOf } from '../../http/pagination.ts';
import {
  type CreateBody,
  cursorOf,
  type JudgeItem,
  type ListQuery,
  type PatchBody,
  placeOf,
  type RuleBody,
  rubricShape,
} from './schema.ts';
import { type JudgeStore, newestFirst, OLD_VERSIONS_MAX } from './store.ts';

/**
 * Maximum judges of one organization, and of enabled ones: each enabled judge looks at every
 * complete trace.
 */
export const JUDGES_ORG_MAX = 2000;
export const JUDGES_ENABLED_MAX = 200;
/**
 * Maximum bytes of one judge's record, and of all judges of one organization: every process holds
 * them in memory.
 */
export const JUDGE_BYTES_MAX = 256 * 1024;
export const JUDGES_BYTES_ORG_MAX = 16 * 1024 * 1024;
const DEFAULT_FIELDS = ['response'];
/** Scores of a rule. */
const RULE_SCALE = [0, 1];
const RULE_PARAMETERS = ['pattern', 'value', 'schema', 'max', 'outcomes'] as const;

export interface JudgesDeps {
  judges: JudgeStore;
  /** Milliseconds since the epoch. */
  now: () => number;
}

/** Returns the judge as responses show it, without its organization. */
export function itemOf(record: JudgeRecord): JudgeItem {
  const { judge_id, version, name, kind, rule, prompt_template, model, rubric } = record;
  const { threshold, scope, cooldown_seconds, enabled, guard = null, created_at, updated_at } = record;
  const asked = { rule, prompt_template, model, rubric, threshold, scope, cooldown_seconds };
  return { judge_id, version, name, kind, ...asked, enabled, guard, created_at, updated_at };
}

/** @throws ApiError judge_not_found */
export function getJudge({ judges }: JudgesDeps, org_id: string, judge_id: string): JudgeRecord {
  const record = judges.get(org_id, judge_id);
  if (record === null) throw notFound(judge_id);
  return record;
}

/**
 * Returns the first version of a judge, checked as any that is stored.
 *
 * @param of.now milliseconds since the epoch
 * @throws ApiError invalid_request for a rule that cannot run, thresholds off the scale or too many
 * bytes; invalid_rubric
 */
export function draftOf(body: CreateBody, of: { org_id: string; judge_id: string; now: number }): JudgeRecord {
  const at = new Date(of.now).toISOString();
  const { name, threshold, scope, enabled } = body;
  const record: JudgeRecord = {
    org_id: of.org_id,
    judge_id: of.judge_id,
    version: 1,
    name,
    kind: body.kind,
    rule: body.kind === 'deterministic' ? ruleOf(body.rule) : null,
    prompt_template: body.kind === 'llm' ? body.prompt_template : null,
    model: body.kind === 'llm' ? body.model : null,
    rubric: body.kind === 'llm' ? rubricOf(body.rubric) : null,
    threshold: thresholdOf(threshold),
    scope: scopeOf(scope),
    cooldown_seconds: body.kind === 'llm' ? (body.cooldown_seconds ?? 0) : 0,
    enabled: enabled ?? true,
    ...(body.kind === 'deterministic' && body.guard != null ? { guard: body.guard } : {}),
    created_at: at,
    updated_at: at,
  };
  checkThreshold(record);
  checkGuard(record);
  checkBytes([], record);
  return record;
}

/**
 * @throws ApiError invalid_request for a rule that cannot run or thresholds off the scale;
 * invalid_rubric; conflict when the organization has the maximum number of judges or bytes
 */
export async function createJudge(deps: JudgesDeps, org_id: string, body: CreateBody): Promise<JudgeRecord> {
  const judge_id = `judge_${randomBytes(8).toString('hex')}`;
  const record = draftOf(body, { org_id, judge_id, now: deps.now() });
  const own = deps.judges.list(org_id);
  if (own.length >= JUDGES_ORG_MAX)
    throw new ApiError('conflict', `The organization has ${JUDGES_ORG_MAX} judges, the most that it can have.`);
  checkEnabled(own, record);
  checkBytes(own, record);
  await deps.judges.create(record);
  return record;
}

/**
 * Creates the next version of a judge.
 *
 * @returns the judge and the fields that changed; none if the judge already was as requested, and
 * it stays at its version
 * @throws ApiError judge_not_found; invalid_request for fields that its kind does not have and
 * thresholds off the scale; invalid_rubric; conflict
 */
export async function changeJudge(
  deps: JudgesDeps,
  org_id: string,
  judge_id: string,
  patch: PatchBody,
): Promise<{ record: JudgeRecord; fields: string[] }> {
  const before = getJudge(deps, org_id, judge_id);
  const parts = partsOf(before, patch);
  let fields: string[] = [];
  const record = await deps.judges.change(org_id, judge_id, (newest) => {
    const next = { ...newest, ...parts };
    if (patch.guard === null) delete next.guard;
    if (parts.threshold !== undefined || parts.rubric !== undefined) checkThreshold(next);
    checkGuard(next);
    fields = Object.keys(fromTo(newest, next, [...Object.keys(parts), 'guard'] as (keyof JudgeRecord)[]));
    if (fields.length === 0) return newest;
    const own = deps.judges.list(org_id);
    checkEnabled(own, next);
    checkBytes(own, next);
    return { ...next, version: newest.version + 1, updated_at: new Date(deps.now()).toISOString() };
  });
  if (record === null) throw notFound(judge_id);
  return { record, fields };
}

/**
 * Returns one page of the judges of an organization, newest first. @throws ApiError invalid_request
 * for a cursor that this list did not return
 */
export function listJudges(
  { judges }: JudgesDeps,
  org_id: string,
  query: ListQuery,
): { data: JudgeItem[]; meta: CursorMeta } {
  const place = query.cursor === undefined ? null : placeOf(query.cursor);
  const part = query.name?.toLowerCase();
  const found = judges
    .list(org_id)
    .filter(
      ({ name, kind, enabled }) =>
        (part === undefined || name.toLowerCase().includes(part)) &&
        (query.kind === undefined || kind === query.kind) &&
        (query.enabled === undefined || enabled === query.enabled),
    );
  const rest = place === null ? found.slice(query.offset) : found.filter((record) => newestFirst(place, record) < 0);
  const page = cursorPage(rest, {
    limit: query.limit,
    total: found.length,
    before: place?.before ?? query.offset,
    byCursor: place !== null,
    cursorAfter: (last, before) => cursorOf({ created_at: last.created_at, judge_id: last.judge_id, before }),
  });
  return { data: page.data.map(itemOf), meta: page.meta };
}

/** Serves GET /v1/judges/{judge_id}/versions. @throws ApiError judge_not_found */
export async function listVersions(
  deps: JudgesDeps,
  org_id: string,
  judge_id: string,
  { limit, offset }: PageQuery,
): Promise<{ data: JudgeItem[]; meta: PageMeta }> {
  const newest = getJudge(deps, org_id, judge_id);
  const total = Math.min(newest.version, OLD_VERSIONS_MAX + 1);
  const versions = Array.from({ length: total }, (_, older) => newest.version - older).slice(offset, offset + limit);
  const records = await deps.judges.versions(newest, versions);
  return { data: records.map(itemOf), meta: pageMetaOf(total, limit, offset) };
}

/** Returns the fields that a patch sets, checked against the kind of the judge. */
function partsOf({ kind }: JudgeRecord, patch: PatchBody): Partial<JudgeRecord> {
  const foreign = (
    kind === 'llm'
      ? (['rule', 'guard'] as const)
      : (['prompt_template', 'model', 'rubric', 'cooldown_seconds'] as const)
  ).find((field) => patch[field] !== undefined);
  if (foreign !== undefined)
    throw new ApiError('invalid_request', `${foreign}: is not a field of a judge of kind ${kind}`);
  const { name, enabled, prompt_template, model, cooldown_seconds } = patch;
  const given = {
    name,
    enabled,
    prompt_template,
    model,
    cooldown_seconds,
    guard: patch.guard ?? undefined,
    rule: patch.rule === undefined ? undefined : ruleOf(patch.rule),
    rubric: patch.rubric === undefined ? undefined : rubricOf(patch.rubric),
    threshold: patch.threshold === undefined ? undefined : thresholdOf(patch.threshold),
    scope: patch.scope === undefined ? undefined : scopeOf(patch.scope),
  };
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
}

/** Returns the rule to store: its fields and the one parameter of its type. */
function ruleOf(body: RuleBody): JudgeRule {
  const { type } = body;
  const needed = PARAMETER_OF[type];
  for (const parameter of RULE_PARAMETERS) {
    if (parameter === needed && body[parameter] === undefined)
      throw new ApiError('invalid_request', `rule.${parameter}: ${type} needs it`);
    if (parameter !== needed && body[parameter] !== undefined)
      throw new ApiError('invalid_request', `rule.${parameter}: is not a parameter of ${type}`);
  }
  if (type === 'max_length' && !Number.isInteger(body.max))
    throw new ApiError('invalid_request', 'rule.max: must be an integer');
  const fields = [...new Set(body.fields ?? (READS_FIELDS.has(type) ? DEFAULT_FIELDS : []))];
  const rule: JudgeRule = { type, fields, ...(needed === null ? {} : { [needed]: body[needed] }) };
  try {
    compileRule(rule);
  } catch (cause) {
    if (!(cause instanceof RuleError)) throw cause;
    throw new ApiError('invalid_request', `rule.${cause.parameter}: ${cause.message}`, { cause });
  }
  return rule;
}

function rubricOf(given: unknown): JudgeRubric {
  const parsed = rubricShape.safeParse(given);
  if (!parsed.success)
    throw new ApiError('invalid_rubric', describeIssues(parsed.error, 'rubric'), { cause: parsed.error });
  return parsed.data;
}

const thresholdOf = ({ pass, warn }: { pass: number; warn?: number | null | undefined }) =>
  warn == null ? { pass } : { pass, warn };

/** Checks that a score can both reach and miss the thresholds. @throws ApiError invalid_request */
function checkThreshold({ threshold, rubric }: Pick<JudgeRecord, 'threshold' | 'rubric'>): void {
  const scale = rubric?.scale ?? RULE_SCALE;
  const [first = 0, last = first] = [scale[0], scale.at(-1)];
  const { pass, warn = pass } = threshold;
  const off = pass < first || pass > last ? 'pass' : warn < first || warn > last ? 'warn' : null;
  if (off !== null)
    throw new ApiError(
      'invalid_request',
      `threshold.${off}: must be a number on the judge's scale, from ${first} to ${last}`,
    );
}

const GUARDED: ReadonlySet<string> = new Set(['prompt', 'response']);
const REDACTING: ReadonlySet<string> = new Set(['regex_absent', 'not_contains']);

/** Checks that the gateway can apply the rule of a guard to a call. @throws ApiError invalid_request */
function checkGuard({ guard, rule }: Pick<JudgeRecord, 'guard' | 'rule'>): void {
  if (guard === undefined || rule === null) return;
  if (!READS_FIELDS.has(rule.type) || rule.fields.some((field) => !GUARDED.has(field)))
    throw new ApiError('invalid_request', 'rule.fields: a guard reads prompt, response or both, and nothing else');
  if (guard === 'redact' && !REDACTING.has(rule.type))
    throw new ApiError('invalid_request', 'guard: redact needs a rule of type regex_absent or not_contains');
}

const scopeOf = (scope: PatchBody['scope']): JudgeRecord['scope'] =>
  Object.fromEntries(Object.entries(scope ?? {}).filter(([, list]) => list != null && list.length > 0));

function checkEnabled(own: readonly JudgeRecord[], record: JudgeRecord): void {
  if (!record.enabled) return;
  const others = own.filter(({ enabled, judge_id }) => enabled && judge_id !== record.judge_id).length;
  if (others >= JUDGES_ENABLED_MAX)
    throw new ApiError(
      'conflict',
      `The organization has ${JUDGES_ENABLED_MAX} enabled judges, the most that it can have. Disable one first.`,
    );
}

/**
 * Checks the size of a judge's record. A judge may always become smaller. @throws ApiError
 * conflict, invalid_request
 */
function checkBytes(own: readonly JudgeRecord[], record: JudgeRecord): void {
  const bytes = bytesOf(record);
  const before = own.find(({ judge_id }) => judge_id === record.judge_id);
  if (before !== undefined && bytes <= bytesOf(before)) return;
  if (bytes > JUDGE_BYTES_MAX)
    throw new ApiError(
      'invalid_request',
      `body: a judge must have at most ${JUDGE_BYTES_MAX} bytes of JSON; this one has ${bytes}`,
    );
  const others = own.reduce((sum, one) => (one === before ? sum : sum + bytesOf(one)), 0);
  if (others + bytes <= JUDGES_BYTES_ORG_MAX) return;
  const detail = `The judges of an organization have at most ${JUDGES_BYTES_ORG_MAX} bytes; the others have ${others}`;
  throw new ApiError('conflict', `${detail}. Shorten one first.`);
}

const bytesOf = (record: JudgeRecord): number => Buffer.byteLength(JSON.stringify(record));

const notFound = (judge_id: string) => new ApiError('judge_not_found', `There is no judge ${judge_id}.`);
