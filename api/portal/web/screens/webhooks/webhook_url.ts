// The state of the page of an endpoint in its address.
import { choice, codec, optionalChoice, text } from '../../url/search_params.ts';

export const TABS = ['attempts', 'letters', 'events', 'verify'] as const;
export const OUTCOMES = ['delivered', 'failed', 'retrying', 'dead-lettered'] as const;

export const webhookUrl = codec({
  tab: choice(TABS, 'attempts'),
  outcome: optionalChoice(OUTCOMES),
  event: text(),
  event_id: text(),
});
