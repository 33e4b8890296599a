// Tools that write. Each is audited as its route is, with the caller as the actor.
import { z } from 'zod';
import { Digest } from '../digest.ts';
import { clip } from '../tokens.ts';
import { args, defineTool, maxChars, traceId } from '../tool.ts';

const WRITE_BUDGET = 1000;
const REPLAY_BUDGET = 4000;
const NAME_CHARS = 100;
const TEXT_CHARS = 1000;
const text = z.string().min(1).max(256);
const fields = z.record(z.string(), z.unknown());

export const addScore = defineTool({
  name: 'add_score',
  title: 'Add a score',
  description: 'Scores a trace, or one of its spans.',
  routes: ['giveScore'],
  writes: true,
  input: z.object({
    trace_id: traceId,
    span_id: text.optional(),
    name: text,
    value: z.union([z.number(), z.boolean(), z.string()]),
    comment: z.string().max(10_000).optional(),
  }),
  run: async (body, call) => {
    const { data } = await call.route('giveScore', { body });
    const { score_id, trace_id, pending = false } = data;
    const digest = new Digest(WRITE_BUDGET).head(
      `Score ${score_id ?? ''} added to ${trace_id}${pending ? ', pending until the trace arrives' : ''}.`,
    );
    return digest.info({ score_id, trace_id, pending }).answer();
  },
});

export const addDatasetItems = defineTool({
  name: 'add_dataset_items',
  title: 'Add dataset items',
  description: 'Makes a new version of a dataset with further items after those of dataset_id.',
  routes: ['createDatasetVersion'],
  writes: true,
  input: z.object({
    dataset_id: text,
    items: z
      .array(z.object({ input: fields, expected: fields.optional(), metadata: fields.optional() }))
      .min(1)
      .max(100),
    version: text.optional(),
  }),
  run: async ({ dataset_id, items, version }, call) => {
    const body = { add: items, ...(version === undefined ? {} : { version }) };
    const { data } = await call.route('createDatasetVersion', { params: { dataset_id }, body });
    const digest = new Digest(WRITE_BUDGET).head(`Dataset version ${data.dataset_id} has ${data.item_count} items.`);
    return digest.info({ dataset_id: data.dataset_id, version: data.version, item_count: data.item_count }).answer();
  },
});

export const createPromptVersion = defineTool({
  name: 'create_prompt_version',
  title: 'Create a prompt version',
  description: 'Adds a version of a prompt, which becomes the newest; {{name}} is a variable.',
  routes: ['createPrompt'],
  writes: true,
  input: z.object({
    name: text,
    template: z.union([z.string().min(1), z.array(z.object({ role: z.string(), content: z.string() })).min(1)]),
    version: text.optional(),
    model: text.optional(),
  }),
  run: async (body, call) => {
    const { data } = await call.route('createPrompt', { body });
    const { version, variables } = data;
    const digest = new Digest(WRITE_BUDGET).head(`Version ${version} created.`);
    return digest
      .info({ version, variables: variables.slice(0, 50) })
      .answer(`get_prompt ${args({ name: clip(body.name, NAME_CHARS), version })}`);
  },
});

export const replayTrace = defineTool({
  name: 'replay_trace',
  title: 'Replay a trace',
  description:
    'Renders a trace with the current prompt versions; commit calls the models, which costs money, and stores a new trace.',
  routes: ['replayTrace'],
  permissions: ['gateway:invoke'],
  writes: true,
  input: z.object({ trace_id: traceId, commit: z.boolean().default(false), max_chars: maxChars(16_000) }),
  run: async ({ trace_id, commit, max_chars }, call) => {
    const { data } = await call.route('replayTrace', { params: { trace_id }, body: { commit } });
    const { spans, new_trace_id } = data;
    const digest = new Digest(REPLAY_BUDGET, max_chars)
      .head(
        new_trace_id === null
          ? `Dry run of ${spans.length} calls.`
          : `${spans.length} calls; new trace ${new_trace_id}.`,
      )
      .info({ trace_id, commit, new_trace_id, calls: spans.length });
    for (const span of spans) {
      const [prompt, model] = [clip(span.prompt_name, NAME_CHARS), clip(span.model, NAME_CHARS)];
      const [before, after] = [clip(span.old_response, TEXT_CHARS), clip(span.new_response, TEXT_CHARS)];
      const rendered = clip(span.new_prompt, TEXT_CHARS);
      const line = `- ${span.span_id} ${prompt} ${span.prompt_version ?? ''} ${model}\n  prompt: ${rendered}\n  before: ${before}${after === '' ? '' : `\n  after: ${after}`}`;
      if (!digest.row(line, { span_id: span.span_id, prompt, model, rendered, before, after })) break;
    }
    if (new_trace_id !== null)
      return digest.answer(`compare_traces ${args({ baseline_trace_id: trace_id, candidate_trace_id: new_trace_id })}`);
    return digest.answer(
      digest.rows < spans.length ? 'the first calls are shown; get_span has the others as they were' : null,
    );
  },
});
