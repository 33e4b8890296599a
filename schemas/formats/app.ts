// The shape of one app event: what a browser or a mobile app reports of a user's session. Other
// fields are allowed.
import { z } from 'zod';
import { eventFields, name, NAME_LENGTH_MAX, optionalTime, outcome } from './fields.ts';

export const appEvent = z.looseObject({
  ...eventFields,
  event_type: name,
  session_id: z.string().min(1).max(NAME_LENGTH_MAX),
  user_id: z.string().max(NAME_LENGTH_MAX).nullish(),
  url: z.string().nullish(),
  timestamp: optionalTime,
  outcome: outcome.nullish(),
});

export type AppEvent = z.infer<typeof appEvent>;
