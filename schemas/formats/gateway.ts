// The shape of one gateway call that is not a chat completion: a response or embeddings, with
// request and answer as the vendor has them. Only the gateway writes it; no ingest path accepts it.
import { z } from 'zod';
import { checkModelCall, modelCallFields, name } from './fields.ts';

export const gatewayEvent = z
  .looseObject({
    operation: z.enum(['responses', 'embeddings']),
    request: z.looseObject({ model: name }),
    response: z.looseObject({}).nullish(),
    ...modelCallFields,
  })
  .check(checkModelCall);

export type GatewayEvent = z.infer<typeof gatewayEvent>;
