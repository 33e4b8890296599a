// Where the refusal of a request belongs on a form. The API begins the detail of a refused field
// with the field's name: `tokens.soft_limit: must be …`. Pure.
import { RequestError } from '../../client/error.ts';

export interface FormErrors {
  /** Error of each named field of the form. */
  fields: Readonly<Record<string, string>>;
  /** Error that belongs to no field of the form; null for none. */
  form: string | null;
}

/**
 * Returns the errors of a form.
 * @param fields names of the form's fields as the API writes them
 */
export function formErrors(error: unknown, fields: readonly string[]): FormErrors {
  if (error === null || error === undefined) return { fields: {}, form: null };
  const detail =
    error instanceof RequestError ? error.detail : error instanceof Error ? error.message : 'The request failed.';
  const colon = detail.indexOf(': ');
  const named = detail.slice(0, Math.max(0, colon));
  const field = fields.find((name) => named === name || named.endsWith(`.${name}`));
  if (field === undefined) return { fields: {}, form: detail };
  const words = detail.slice(colon + 2);
  return { fields: { [field]: `${words.charAt(0).toUpperCase()}${words.slice(1)}` }, form: null };
}
