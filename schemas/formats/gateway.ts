// The shape of one call that went through the gateway and is no chat completion: a response or embeddings, request and answer as the
// vendor has them. The gateway writes it; no ingest path takes it.
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
