// The shape of one messages event: a call of an Anthropic-style messages API, with request and
// response as the vendor's SDK has them. The types of the fields named here are checked; other
// fields are allowed.
import { z } from 'zod';
import { checkModelCall, modelCallFields, name, tokenCount } from './fields.ts';

const block = z.looseObject({ type: z.string(), text: z.string().nullish() });
const content = z.union([z.string(), z.array(block)], { error: 'must be a string or a list of blocks with a type' });

export const messagesEvent = z
  .looseObject({
    request: z.looseObject({
      model: name,
      system: content.nullish(),
      messages: z.array(z.looseObject({ role: z.string(), content })),
      temperature: z.number().nullish(),
      max_tokens: z.int().min(0).nullish(),
    }),
    response: z
      .looseObject({
        id: z.string().nullish(),
        model: z.string().nullish(),
        content: z.array(block).nullish(),
        stop_reason: z.string().nullish(),
        usage: z
          .looseObject({
            input_tokens: tokenCount,
            output_tokens: tokenCount,
            cache_read_input_tokens: tokenCount,
            cache_creation_input_tokens: tokenCount,
          })
          .nullish(),
      })
      .nullish(),
    ...modelCallFields,
  })
  .check(checkModelCall);

export type MessagesEvent = z.infer<typeof messagesEvent>;
