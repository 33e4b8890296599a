// The result of a check that rejects an event. Types only.

/** Problem and place: a path like `response.usage.prompt_tokens`, empty for the whole value. */
export interface Refusal {
  ok: false;
  path: string;
  message: string;
}
