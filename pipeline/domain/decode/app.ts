// Decoder of the format `app`: events that a browser or mobile app reports. The span is named after
// its event type; url and all other fields join the attributes. Session and user become columns
// (span.ts).
import type { AppEvent } from '../../../schemas/formats/app.ts';
import { addOthers, EVENT_FIELDS, NO_USAGE, ownAttributes, type Draft } from './draft.ts';

/** An app's request and response are attributes like any other field. */
const APP_FIELDS = new Set(
  [...EVENT_FIELDS]
    .filter((field) => field !== 'request' && field !== 'response')
    .concat('event_type', 'session_id', 'user_id', 'timestamp'),
);

export function decodeApp(event: AppEvent): Draft {
  const attributes = ownAttributes(event);
  addOthers(attributes, event, APP_FIELDS, '');
  return {
    kind: 'app',
    name: event.event_type,
    model: '',
    answered_model: '',
    provider: null,
    messages: null,
    prompt_text: '',
    response: '',
    usage: NO_USAGE,
    answered: false,
    attributes,
    steps: [],
  };
}
