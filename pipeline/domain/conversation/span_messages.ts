// Puts together the prompt and the response of a span from log records that hold its messages, as
// the instrumentations of OpenTelemetry send them beside the span. In: the records in the order in
// which they were said. Out: texts by span. Records and spans stay as they landed; every reader joins
// them, so neither has to arrive first.
import { parsedList } from '../decode/otlp_parts.ts';
import { DETAILS_RECORD } from '../decode/otlp_log_names.ts';

export interface SpanMessage {
  /** The span that the message belongs to. */
  span_id: string;
  /** Name of the record. */
  name: string;
  prompt: string;
  response: string;
}

export interface SpanTexts {
  prompt: string;
  response: string;
}

/** Returns the texts of each span that has messages. */
export function textsOfMessages(messages: readonly SpanMessage[]): Map<string, SpanTexts> {
  const bySpan = Map.groupBy(messages, ({ span_id }) => span_id);
  return new Map([...bySpan].map(([span_id, own]) => [span_id, joined(own)]));
}

/** A record with all messages wins over the records of one message each, which repeat them. */
function joined(messages: readonly SpanMessage[]): SpanTexts {
  const whole = messages.filter(({ name }) => name === DETAILS_RECORD);
  const asked = whole.findLast(({ prompt }) => prompt !== '')?.prompt;
  const answered = whole.findLast(({ response }) => response !== '')?.response;
  return {
    prompt: asked ?? joinedPrompts(messages.map(({ prompt }) => prompt).filter((prompt) => prompt !== '')),
    response:
      answered ??
      messages
        .map(({ response }) => response)
        .filter((response) => response !== '')
        .join('\n'),
  };
}

/** Returns one list of all messages; a text that is no list stands as it is. */
function joinedPrompts(prompts: readonly string[]): string {
  const [only] = prompts;
  if (only === undefined || prompts.length === 1) return only ?? '';
  return JSON.stringify(prompts.flatMap((prompt) => parsedList(prompt) ?? [{ role: 'user', content: prompt }]));
}

/** Returns a span's own texts, with those of its messages where it has none. */
export function withMessages<T extends SpanTexts>(own: T, said: SpanTexts | undefined): T {
  if (said === undefined) return own;
  return {
    ...own,
    prompt: own.prompt === '' ? said.prompt : own.prompt,
    response: own.response === '' ? said.response : own.response,
  };
}
