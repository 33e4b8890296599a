// Request and response shapes of the previews of traces.
import { z } from 'zod';
import { listParam } from '../../http/route.ts';

const TRACES_MAX = 50;
/** Maximum characters of a text of a preview. */
export const PREVIEW_CHARS = 240;
const FIELDS = ['user_text', 'answer', 'error', 'models', 'verdicts'] as const;

export const previewsQuery = z.object({
  trace_ids: listParam(z.string().max(128))
    .refine((ids) => ids.length > 0 && ids.length <= TRACES_MAX, { error: `must be 1 to ${TRACES_MAX} trace ids` })
    .describe(`At most ${TRACES_MAX} traces`),
  fields: listParam(z.enum(FIELDS))
    .default([...FIELDS])
    .describe('Fields to return. Without it all'),
});
export type PreviewsQuery = z.output<typeof previewsQuery>;

const text = z.string().nullable();

export const preview = z
  .object({
    trace_id: z.string(),
    user_text: text
      .optional()
      .describe(
        `First message of the user in the first model call, at most ${PREVIEW_CHARS} characters; null if it is not stored`,
      ),
    answer: text.optional().describe(`Answer of the last model call, at most ${PREVIEW_CHARS} characters`),
    error: z
      .object({ name: z.string().describe('Name of the span that failed first'), message: text })
      .nullable()
      .optional()
      .describe('null if no span failed'),
    models: z.array(z.string()).optional().describe('At most 20'),
    verdicts: z
      .array(z.object({ judge_id: z.string(), name: z.string(), verdict: z.string(), score: z.number().nullable() }))
      .optional()
      .describe('Newest score of each judge'),
  })
  .meta({ id: 'TracePreview' });
export type Preview = z.infer<typeof preview>;
