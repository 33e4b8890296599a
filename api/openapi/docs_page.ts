// Renders the OpenAPI document as one HTML page. The page loads nothing: its style and its search script are inline. It is complete
// without the script. ops/adr/0042-reference-page.md says why it is our own.
import type { Json, JsonObject } from './document.ts';
import { DOCS_SCRIPT } from './docs_script.ts';
import { DOCS_CSS } from './docs_style.ts';

const DEPTH_MAX = 6;

/**
 * Renders the page.
 * @param pages links to the guides and the pages for operators, as HTML
 */
export function docsPage(document: JsonObject, pages: string): string {
  const info = object(document['info']);
  const operations = operationsOf(document);
  const tags = list(document['tags']).map((tag) => text(object(tag)['name']));
  const groups = tags.map((tag) => ({ tag, operations: operations.filter((operation) => operation.tag === tag) }));
  const nav = groups
    .map(
      ({ tag, operations: of }) =>
        `<details class="operations"><summary>${escape(tag)}</summary>${of.map((operation) => link(operation)).join('')}</details>`,
    )
    .join('');
  const main = groups
    .map(
      ({ tag, operations: of }) =>
        `<section><h2 class="tag">${escape(tag)}</h2>${of.map((operation) => article(operation, document)).join('')}</section>`,
    )
    .join('');
  const title = escape(text(info['title']));
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>${title}</title><style>${DOCS_CSS}</style></head>
<body class="reference"><nav id="contents"><p class="brand">${title}</p><p class="version">API ${escape(text(info['version']))} · <a href="/openapi.json">openapi.json</a></p>${SEARCH}${pages}<h2>Reference</h2>${nav}</nav>
<main><a class="contents" href="#contents">Contents</a><h1>${title}</h1>${prose(text(info['description']))}${credentials(document)}${main}${errors(document)}</main>
<script>${DOCS_SCRIPT}</script></body></html>
`;
}

/** Shown by the script. */
const SEARCH =
  '<form hidden role="search"><input id="find" type="search" placeholder="Search (press /)" aria-label="Search the documentation" autocomplete="off"><output id="found" for="find"></output></form>';

interface Operation {
  id: string;
  method: string;
  path: string;
  tag: string;
  of: JsonObject;
}

function operationsOf(document: JsonObject): Operation[] {
  return Object.entries(object(document['paths'])).flatMap(([path, methods]) =>
    Object.entries(object(methods)).map(([name, value]) => {
      const of = object(value);
      return { id: text(of['operationId']), method: name, path, tag: text(list(of['tags'])[0] ?? ''), of };
    }),
  );
}

function link({ id, method: name, path, of }: Operation): string {
  return `<a href="#${id}" title="${escape(`${name.toUpperCase()} ${path}`)}"><span>${escape(text(of['summary']))}</span>${method(name)}</a>`;
}

function article(operation: Operation, document: JsonObject): string {
  const { of } = operation;
  const body = object(object(object(of['requestBody'])['content'])['application/json']);
  const parts = [
    `<h3 id="${operation.id}">${escape(text(of['summary']))}</h3>`,
    `<p class="route">${method(operation.method)}<code>${escape(operation.path)}</code></p>`,
    of['description'] === undefined ? '' : prose(text(of['description'])),
    parameters(list(of['parameters'])),
    body['schema'] === undefined ? '' : `<h4>Body</h4>${fields(body['schema'], document, 0)}`,
    `<h4>Answers</h4>${answers(object(of['responses']), document)}`,
  ];
  const example = `<h4>Example</h4><pre>${escape(curl(operation, body['example']))}</pre>`;
  return `<article><div>${parts.join('')}</div><div class="example">${example}</div></article>`;
}

function parameters(of: readonly Json[]): string {
  if (of.length === 0) return '';
  const rows = of.map((value) => {
    const parameter = object(value);
    const schema = object(parameter['schema']);
    const note = [text(parameter['description'] ?? ''), constraintsOf(schema)].filter((part) => part !== '').join('. ');
    const need = parameter['required'] === true ? '<b>required</b>' : 'optional';
    return `<tr><td><code>${escape(text(parameter['name']))}</code></td><td>${escape(text(parameter['in']))}</td><td>${escape(typeOf(schema))}</td><td>${need}</td><td>${escape(note)}</td></tr>`;
  });
  return `<h4>Parameters</h4><div class="wide"><table><tbody>${rows.join('')}</tbody></table></div>`;
}

function answers(responses: JsonObject, document: JsonObject): string {
  return Object.entries(responses)
    .map(([status, value]) => {
      const response = object(value);
      const failed = Number(status) >= 400;
      if (failed) return `<p class="status"><b class="bad">${status}</b> ${escape(text(response['description']))}</p>`;
      const [media, content] = Object.entries(object(response['content']))[0] ?? ['', {}];
      const schema = object(content)['schema'];
      return `<p class="status"><b class="good">${status}</b> ${escape(media)}</p>${schema === undefined ? '' : schemaBlock(schema, document)}`;
    })
    .join('');
}

/** Returns the fields of a request body as a list. Fields of objects fold out below their field. */
function fields(schema: Json, document: JsonObject, depth: number): string {
  const of = resolve(object(schema), document);
  const variants = alternativesOf(of, document);
  if (variants.length > 1 && variants.every((one) => one['properties'] !== undefined))
    return variants.map((one) => folded(`With ${distinctionOf(one)}`, fields(one, document, depth + 1))).join('');
  if (of['properties'] === undefined || depth >= DEPTH_MAX) return `<pre>${escape(outline(of, document, 0))}</pre>`;
  const required = list(of['required'] ?? []);
  const items = Object.entries(object(of['properties'])).map(([name, value]) =>
    fieldItem(name, object(value), required.includes(name), document, depth),
  );
  return `<ul class="fields">${items.join('')}</ul>`;
}

function fieldItem(name: string, schema: JsonObject, isRequired: boolean, document: JsonObject, depth: number): string {
  const field = resolve(schema, document);
  const variants = alternativesOf(field, document);
  const kind = (variants.length > 0 ? variants : [field]).map(typeOf).join(' | ');
  const limits = constraintsOf(field);
  const need = isRequired ? ' <b>required</b>' : '';
  const note = text(schema['description'] ?? field['description'] ?? '');
  const about = note === '' ? '' : `<p>${escape(note)}</p>`;
  // A nullable object has two alternatives, and only one of them has fields.
  const nested = [field, ...variants]
    .map((one) => (one['type'] === 'array' ? resolve(object(one['items']), document) : one))
    .find((one) => one['properties'] !== undefined);
  const below = nested === undefined ? '' : folded('Fields', fields(nested, document, depth + 1));
  const facts = [kind, limits].filter((part) => part !== '').join(', ');
  return `<li><code>${escape(name)}</code> <i>${escape(facts)}</i>${need}${about}${below}</li>`;
}

function alternativesOf(schema: JsonObject, document: JsonObject): JsonObject[] {
  return [...list(schema['anyOf'] ?? []), ...list(schema['oneOf'] ?? [])].map((one) => resolve(object(one), document));
}

/** Returns the field that tells a variant from the others, such as `kind "llm"`. */
function distinctionOf(variant: JsonObject): string {
  const constant = Object.entries(object(variant['properties'])).find(
    ([, value]) => object(value)['const'] !== undefined,
  );
  return constant === undefined ? 'these fields' : `${constant[0]} ${JSON.stringify(object(constant[1])['const'])}`;
}

const folded = (title: string, html: string): string => `<details><summary>${escape(title)}</summary>${html}</details>`;

function schemaBlock(schema: Json, document: JsonObject): string {
  return folded('Schema', `<pre>${escape(outline(schema, document, 0))}</pre>`);
}

/** Returns a schema as an outline: one field per line, optional fields with a question mark. */
function outline(schema: Json, document: JsonObject, depth: number): string {
  const of = resolve(object(schema), document);
  const pad = '  '.repeat(depth + 1);
  const close = '  '.repeat(depth);
  const alternatives = [...list(of['anyOf'] ?? []), ...list(of['oneOf'] ?? [])];
  if (alternatives.length > 0) return alternatives.map((one) => outline(one, document, depth)).join(' | ');
  if (depth >= DEPTH_MAX) return typeOf(of);
  if (of['properties'] !== undefined) {
    const required = list(of['required'] ?? []);
    const lines = Object.entries(object(of['properties'])).map(([name, value]) => {
      const note = text(object(value)['description'] ?? '');
      return `${pad}${name}${required.includes(name) ? '' : '?'}: ${outline(value, document, depth + 1)}${note === '' ? '' : `   // ${note}`}`;
    });
    const more =
      of['additionalProperties'] === undefined || of['additionalProperties'] === false
        ? ''
        : `\n${pad}… further fields`;
    return `{\n${lines.join('\n')}${more}\n${close}}`;
  }
  if (of['type'] === 'array' && of['items'] !== undefined) return `[${outline(of['items'], document, depth)}]`;
  const constraints = constraintsOf(of);
  return constraints === '' ? typeOf(of) : `${typeOf(of)} (${constraints})`;
}

function resolve(schema: JsonObject, document: JsonObject): JsonObject {
  const ref = schema['$ref'];
  if (typeof ref !== 'string') return schema;
  return object(object(object(document['components'])['schemas'])[ref.slice(ref.lastIndexOf('/') + 1)]);
}

function typeOf(schema: JsonObject): string {
  if (Array.isArray(schema['enum'])) return schema['enum'].map((value) => JSON.stringify(value)).join(' | ');
  if (schema['const'] !== undefined) return JSON.stringify(schema['const']);
  if (schema['type'] === 'array') return `${typeOf(object(schema['items']))}[]`;
  const { type, format } = schema;
  return [typeof type === 'string' ? type : 'any', typeof format === 'string' ? format : '']
    .filter((part) => part !== '')
    .join(', ');
}

function constraintsOf(schema: JsonObject): string {
  const shown: string[] = [];
  for (const [key, word] of [
    ['minimum', 'from'],
    ['maximum', 'to'],
    ['minLength', 'at least'],
    ['maxLength', 'at most'],
    ['default', 'default'],
  ] as const) {
    const value = schema[key];
    if (value !== undefined && Math.abs(Number(value)) !== Number.MAX_SAFE_INTEGER)
      shown.push(`${word} ${typeof value === 'string' ? value : JSON.stringify(value)}`);
  }
  return shown.join(', ');
}

function curl(operation: Operation, example: Json | undefined): string {
  const security = JSON.stringify(operation.of['security'] ?? []);
  const needed = list(operation.of['parameters'])
    .map(object)
    .filter((parameter) => parameter['in'] === 'query' && parameter['required'] === true);
  const query = needed.map((parameter) => `${text(parameter['name'])}=…`).join('&');
  const path =
    operation.path.replace(/\{([a-z_]+)\}/g, (_whole, name: string) => `$${name.toUpperCase()}`) +
    (query === '' ? '' : `?${query}`);
  const lines = [`curl${operation.method === 'get' ? '' : ` -X ${operation.method.toUpperCase()}`} "$BASE_URL${path}"`];
  if (security.includes('orgApiKey')) lines.push(`-H "Authorization: Bearer $API_KEY"`, `-H "X-Org-Id: $ORG_ID"`);
  if (security.includes('operator')) lines.push(`-H "Authorization: Bearer $ADMIN_TOKEN"`);
  if (example !== undefined)
    lines.push(
      `-H "Content-Type: application/json"`,
      `-d '${JSON.stringify(example, null, 2).replaceAll("'", "'\\''")}'`,
    );
  return lines.join(' \\\n  ');
}

function credentials(document: JsonObject): string {
  const rows = Object.values(object(object(document['components'])['securitySchemes'])).map((value) => {
    const scheme = object(value);
    const header = scheme['type'] === 'apiKey' ? `${text(scheme['name'])}: …` : 'Authorization: Bearer …';
    return `<tr><td><code>${escape(header)}</code></td><td>${escape(text(scheme['description']))}</td></tr>`;
  });
  return `<h2 class="tag">Credentials</h2><div class="wide"><table><tbody>${rows.join('')}</tbody></table></div>`;
}

function errors(document: JsonObject): string {
  const schema = object(object(object(document['components'])['schemas'])['Error']);
  return `<section><h2 class="tag">Errors</h2><p>Every error response has this body.</p><pre>${escape(outline(schema, document, 0))}</pre></section>`;
}

function method(name: string): string {
  return `<em class="${name}">${name.toUpperCase()}</em>`;
}

/** Renders paragraphs with **bold** and \`code\`. */
function prose(markdown: string): string {
  return markdown
    .split('\n\n')
    .map(
      (paragraph) =>
        `<p>${escape(paragraph)
          .replace(/\*\*(.+?)\*\*/g, '<b>$1</b>')
          .replace(/`(.+?)`/g, '<code>$1</code>')}</p>`,
    )
    .join('');
}

function escape(raw: string): string {
  return raw.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
}

function object(value: Json | undefined): JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : {};
}

function list(value: Json | undefined): Json[] {
  return Array.isArray(value) ? value : [];
}

function text(value: Json | undefined): string {
  return typeof value === 'string' ? value : '';
}
