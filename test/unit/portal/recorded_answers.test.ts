// The recorded answers from which the browser tests take their pictures are answers that the API still gives: each one
// has the shape that the OpenAPI document declares for its operation.
import { Ajv2020 } from 'ajv/dist/2020.js';
import { expect, test } from 'vitest';
import { contractDocument } from '../../support/portal_contract.ts';
import { readRecording } from '../../browser/support/recording.ts';

const document = await contractDocument();
const templates = Object.keys(document['paths'] as object);
const ajv = new Ajv2020({ strict: false, validateFormats: false, allErrors: true });
ajv.addSchema(document, 'openapi');

/** Returns the path of the document that a path of a request matches; fixed segments win over parameters. */
function templateOf(path: string): string | undefined {
  const parts = path.split('/');
  const fits = (template: string): boolean => {
    const names = template.split('/');
    return names.length === parts.length && names.every((name, at) => name.startsWith('{') || name === parts[at]);
  };
  const parameters = (template: string): number => template.split('{').length;
  return templates.filter(fits).toSorted((a, b) => parameters(a) - parameters(b))[0];
}

const escaped = (part: string): string => part.replaceAll('~', '~0').replaceAll('/', '~1');

test.each(Object.entries(readRecording().answers))(
  'the answer to %s has the shape that the API declares',
  (name, answer) => {
    const [method = '', target = ''] = name.split(' ', 2);
    const template = templateOf(target.split('?', 1)[0] ?? '');
    expect(template, 'the API has no such operation; run npm run portal:pictures -- --record').toBeDefined();
    const at = ['paths', template ?? '', method.toLowerCase(), 'responses', String(answer.status), 'content'];
    const pointer = [...at, 'application/json', 'schema'].map(escaped).join('/');
    const validate = ajv.compile({ $ref: `openapi#/${pointer}` });
    expect(validate(JSON.parse(answer.body)) ? [] : validate.errors).toEqual([]);
  },
);
