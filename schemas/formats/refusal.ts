// What the checks of an event say when they refuse it. Types only.

/** What is wrong, and where: path like `response.usage.prompt_tokens`, empty for the whole value. */
export interface Refusal {
  ok: false;
  path: string;
  message: string;
}
