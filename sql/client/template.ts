// Query files with parts that depend on the parameters. The marks are SQL comments, so that a file
// stays readable SQL:
//   /*if name*/ … /*end*/             included only when the parameter is given
//   /*each name with OR*/ … /*end*/   repeated per element and joined; {name_field:Type} is its field
//   /*every name with ,*/ … /*end*/   repeated per element, as if its fields were all parameters given
//   /*include path*/                  another file of sql/queries
// Pure. Values never enter the text: they stay parameters.
import { readFileSync } from 'node:fs';

/** Parsed query file. */
export type Template = readonly Part[];

type Part =
  | { kind: 'text'; text: string }
  | { kind: 'if'; name: string; body: Template }
  | { kind: 'each'; name: string; separator: string; body: Template }
  | { kind: 'every'; name: string; separator: string; body: Template };

/** Parameters of a template: plain values, and lists of records for its `each` parts. */
export type TemplateParams = Readonly<Record<string, unknown>>;

const MARK = /\/\*(if|each|every|include|end)(?: ([a-z_]+(?:\/[a-z_]+\.sql)?))?(?: with ([^*]+?))?\*\//g;

/** Reads a file of sql/queries, e.g. `traces/page.sql`. */
export function readTemplate(path: string): Template {
  return parseTemplate(readFileSync(new URL(`../queries/${path}`, import.meta.url), 'utf8'), readTemplate);
}

/**
 * Parses a query file.
 * @throws Error on a mark without its counterpart
 */
export function parseTemplate(sql: string, include: (path: string) => Template): Template {
  const text = sql.replaceAll(/^[\t ]*--.*\n?/gm, '').trim();
  const root: Part[] = [];
  const open: Part[][] = [root];
  let at = 0;
  for (const match of text.matchAll(MARK)) {
    const [whole, mark, name = '', separator = ''] = match;
    const here = open.at(-1) ?? root;
    here.push({ kind: 'text', text: text.slice(at, match.index) });
    at = match.index + whole.length;
    if (mark === 'include') here.push(...include(name));
    else if (mark === 'end') open.pop();
    else {
      const body: Part[] = [];
      const kind = mark === 'each' || mark === 'every' ? mark : null;
      here.push(kind === null ? { kind: 'if', name, body } : { kind, name, separator, body });
      open.push(body);
    }
    if (open.length === 0) throw new Error('an /*end*/ too many');
  }
  if (open.length !== 1) throw new Error('an /*end*/ is missing');
  root.push({ kind: 'text', text: text.slice(at) });
  return root;
}

/**
 * Returns the statement for the given parameters, and the parameters in the server's form: fields
 * of list elements carry the element's number.
 */
export function renderTemplate(
  template: Template,
  params: TemplateParams,
): { sql: string; params: Record<string, unknown> } {
  const lists = new Set<string>();
  const bound: Record<string, unknown> = {};
  const sql = render(template, params, bound, lists);
  for (const [name, value] of Object.entries(params)) {
    if (value !== undefined && !lists.has(name)) bound[name] = value;
  }
  return { sql, params: bound };
}

function render(
  template: Template,
  params: TemplateParams,
  bound: Record<string, unknown>,
  lists: Set<string>,
): string {
  return template
    .map((part) => {
      switch (part.kind) {
        case 'text':
          return part.text;
        case 'if':
          return params[part.name] === undefined ? '' : render(part.body, params, bound, lists);
        case 'each':
          lists.add(part.name);
          return renderEach(
            part,
            records(part.name, params[part.name]),
            render(part.body, params, bound, lists),
            bound,
          );
        case 'every':
          lists.add(part.name);
          return renderEvery(part, records(part.name, params[part.name]), bound);
      }
    })
    .join('');
}

function records(name: string, value: unknown): readonly Record<string, unknown>[] {
  if (!Array.isArray(value)) throw new Error(`${name} takes a list of records`);
  return value as readonly Record<string, unknown>[];
}

function renderEach(
  { name, separator }: { name: string; separator: string },
  elements: readonly Record<string, unknown>[],
  body: string,
  bound: Record<string, unknown>,
): string {
  return elements
    .map((element, index) => {
      for (const [field, value] of Object.entries(element)) bound[`${name}_${field}_${index}`] = value;
      return body.replaceAll(/\{([a-z_]+):/g, (whole, field: string) =>
        field.startsWith(`${name}_`) ? `{${field}_${index}:` : whole,
      );
    })
    .join(` ${separator} `);
}

/** Renders the body with the fields of each element alone; their names get the number of the element. */
function renderEvery(
  { name, separator, body }: { name: string; separator: string; body: Template },
  elements: readonly Record<string, unknown>[],
  bound: Record<string, unknown>,
): string {
  return elements
    .map((element, index) => {
      const { sql, params } = renderTemplate(body, element);
      for (const [field, value] of Object.entries(params)) bound[`${name}_${index}_${field}`] = value;
      return sql.replaceAll(/\{([a-z0-9_]+):/g, (whole, field: string) =>
        Object.hasOwn(params, field) ? `{${name}_${index}_${field}:` : whole,
      );
    })
    .join(` ${separator} `);
}
