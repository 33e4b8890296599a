// Every change that the API offers has a place in the portal. The test walks the document of the API and
// finds the requests in the source of the portal; a change without a place stands below with its reason.
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { contractDocument } from '../../support/portal_contract.ts';

const WEB = path.resolve(import.meta.dirname, '../../../api/portal/web');

/** Changes that have no place in the portal by design. */
const BY_DESIGN: Readonly<Record<string, string>> = {
  'DELETE /api/public/v2/prompts/{name}': 'for Langfuse clients; the portal calls DELETE /v1/prompts/{name}',
  'PATCH /api/public/v2/prompts/{name}/versions/{version}':
    'for Langfuse clients; the portal calls PUT /v1/prompts/{name}/labels/{label}',
  'POST /api/public/dataset-run-items': 'for Langfuse clients; the portal runs datasets by POST /v1/datasets/{id}/run',
  'POST /api/public/media': 'for Langfuse clients, which ask before they upload media',
  'POST /api/public/scores': 'for Langfuse clients; the portal calls POST /v1/scores',
  'POST /api/public/v2/prompts': 'for Langfuse clients; the portal calls POST /v1/prompts',
  'POST /langsmith/feedback': 'for LangSmith clients; the portal calls POST /v1/scores',
  'DELETE /v1/judges/{judge_id}': 'the same as PATCH with enabled false, which the portal calls, as it can be undone',
  'POST /orgs/{org_id}/agents/register': 'an agent registers itself; the portal makes its register token',
  'POST /v1/budgets/{org_id}/alerts': 'a second path of POST /orgs/{org_id}/budget/alerts, which the portal calls',
  'POST /v1/budgets/{org_id}/alerts/test':
    'a second path of POST /orgs/{org_id}/budget/alerts/test, which the portal calls',
};

const METHODS = ['post', 'put', 'patch', 'delete'] as const;

/** The part of the document that the test reads. */
interface Document {
  paths: Record<string, Partial<Record<(typeof METHODS)[number], unknown>>>;
}

/** Returns a path with `{}` in the place of each parameter, as the document and the code name them differently. */
const shapeOf = (address: string): string => address.replaceAll(/\$?\{[^}]*\}/g, '{}').split('?')[0] ?? '';

function sourcesOf(): string[] {
  return readdirSync(WEB, { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.tsx?$/.test(name) && !name.endsWith('.d.ts'))
    .map((name) => readFileSync(path.join(WEB, name), 'utf8'));
}

/** Returns the texts of the constants of a source, by name. */
function textsOf(source: string): Map<string, string> {
  const texts = new Map<string, string>();
  for (const [, name = '', text = ''] of source.matchAll(/const (\w+) = ['`]([^'`\n]+)['`]/g)) texts.set(name, text);
  return texts;
}

/** Constants of a template may name other constants, so deep. */
const DEPTH_MAX = 4;

/** Returns the path that an expression names: a text, a template over constants, or a constant. */
function pathOf(expression: string, own: ReadonlyMap<string, string>, all: ReadonlyMap<string, string>): string {
  const of = (name: string): string | undefined => own.get(name) ?? all.get(name);
  let text = /^['`]/.test(expression) ? expression.slice(1, -1) : (of(expression) ?? '');
  for (let depth = 0; depth < DEPTH_MAX; depth += 1)
    text = text.replaceAll(/\$\{(\w+)\}/g, (whole, name: string) => of(name) ?? whole);
  return text;
}

const SEND = /\bsend\(\s*[\w.]+,\s*'(\w+)',\s*('[^']+'|`[^`]+`|\w+)/g;
const FETCH = /\bfetch\(\s*('[^']+'|`[^`]+`|\w+),\s*\{\s*method: '(\w+)'/g;

/** Returns the method and the path of every change that the portal asks for. */
function asked(): Set<string> {
  const sources = sourcesOf();
  const all = new Map(sources.flatMap((source) => [...textsOf(source)]));
  return new Set(
    sources.flatMap((source) => {
      const own = textsOf(source);
      const line = (method: string, expression: string): string =>
        `${method.toUpperCase()} ${shapeOf(pathOf(expression, own, all))}`;
      return [
        ...[...source.matchAll(SEND)].map(([, method = '', expression = '']) => line(method, expression)),
        ...[...source.matchAll(FETCH)].map(([, expression = '', method = '']) => line(method, expression)),
      ];
    }),
  );
}

function changesOf(document: unknown): string[] {
  return Object.entries((document as Document).paths).flatMap(([address, operations]) =>
    METHODS.filter((method) => operations[method] !== undefined).map((method) => `${method.toUpperCase()} ${address}`),
  );
}

test('every change of the API has a place in the portal, or a reason to have none', async () => {
  const places = asked();
  const changes = changesOf(await contractDocument());
  const missing = changes.filter((change) => !places.has(shapeOf(change)));
  const known = Object.keys(BY_DESIGN);
  expect(
    missing.filter((change) => !known.includes(change)),
    'changes without a place in the portal',
  ).toEqual([]);
  expect(
    Object.keys(BY_DESIGN).filter((change) => !missing.includes(change)),
    'changes that have a place although the list says none',
  ).toEqual([]);
});

test('every request of the portal that changes something is one of the API', async () => {
  const offered = new Set(changesOf(await contractDocument()).map(shapeOf));
  // The gateway is described apart from the slices.
  offered.add('POST /v1/chat/completions');
  expect([...asked()].filter((request) => !offered.has(request))).toEqual([]);
});
