// The shape of one chatcompletion event: a call of an OpenAI-style chat completions API, with
// request and response as the vendor's SDK has them. The types of the fields named here are
// checked; other fields are allowed.
import { z } from 'zod';
import { checkModelCall, modelCallFields, name, tokenCount } from './fields.ts';

const part = z.looseObject({ type: z.string(), text: z.string().nullish() });
const content = z
  .union([z.string(), z.array(part), z.null()], { error: 'must be a string, a list of parts with a type, or null' })
  .optional();
const toolCalls = z.array(z.looseObject({})).nullish();

const choice = z.looseObject({
  index: z.int().nullish(),
  message: z.looseObject({ role: z.string().nullish(), content, tool_calls: toolCalls }),
  finish_reason: z.string().nullish(),
});

export const chatcompletionEvent = z
  .looseObject({
    request: z.looseObject({
      model: name,
      messages: z.array(z.looseObject({ role: z.string(), content, tool_calls: toolCalls })),
      temperature: z.number().nullish(),
      max_tokens: z.int().min(0).nullish(),
    }),
    response: z
      .looseObject({
        id: z.string().nullish(),
        model: z.string().nullish(),
        choices: z.array(choice).nullish(),
        usage: z
          .looseObject({
            prompt_tokens: tokenCount,
            completion_tokens: tokenCount,
            total_tokens: tokenCount,
            prompt_tokens_details: z.looseObject({ cached_tokens: tokenCount }).nullish(),
          })
          .nullish(),
      })
      .nullish(),
    ...modelCallFields,
  })
  .check(checkModelCall);

export type ChatcompletionEvent = z.infer<typeof chatcompletionEvent>;
