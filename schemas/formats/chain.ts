// The shape of one chain event: a run of a LangChain-style chain or agent, its model call as an
// LLMResult and its tool calls as intermediate steps. The types of the fields named here are
// checked; other fields are allowed.
import { z } from 'zod';
import { checkModelCall, modelCallFields, name, tokenCount } from './fields.ts';

/**
 * A serialized message is an object; LangChain also accepts a string, or a pair of role and text.
 */
const message = z.union([z.looseObject({}), z.string(), z.tuple([z.string(), z.string()])], {
  error: 'must be a message: an object, a string, or a pair of role and text',
});

export const chainEvent = z
  .looseObject({
    chain_name: name,
    agent_name: z.string().nullish(),
    request: z.looseObject({ model: name, messages: z.array(message) }),
    response: z
      .looseObject({
        generations: z
          .array(z.array(z.looseObject({ text: z.string().nullish(), generation_info: z.looseObject({}).nullish() })))
          .nullish(),
        llm_output: z
          .looseObject({
            token_usage: z
              .looseObject({ prompt_tokens: tokenCount, completion_tokens: tokenCount, total_tokens: tokenCount })
              .nullish(),
          })
          .nullish(),
      })
      .nullish(),
    intermediate_steps: z
      .array(z.tuple([z.string(), z.string()], { error: 'must be a pair of strings: [action, observation]' }))
      .max(1000)
      .nullish(),
    ...modelCallFields,
  })
  .check(checkModelCall);

export type ChainEvent = z.infer<typeof chainEvent>;
