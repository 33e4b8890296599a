// The gateway for pages of this service: calls with the session cookie, and calls that name a prompt
// of the registry.
import { beforeAll, describe, expect, test } from 'vitest';
import { events } from '../../support/model_server.ts';
import { makeMember, OTHER_ORG, OWNER } from '../api/a_cast.ts';
import { call, ORG, tokenOf } from '../api/an_api.ts';
import { api, aTrace, attributesOf, spanOf, upstream } from './openai_client.ts';
import { LAST, question, STREAM } from './openai_shapes.ts';

const BODY = { model: 'gpt-4o-mini', messages: question, stream: true };
let cookie: string;

beforeAll(async () => {
  cookie = `svc_session=${(await makeMember(api, 'member')).token}`;
});

/** Calls as the browser of a page of this service does. */
const asPage = (headers: Record<string, string | undefined> = {}) =>
  call(api, 'POST', '/v1/chat/completions', {
    body: BODY,
    headers: {
      'X-Org-Api-Key': undefined,
      'X-Org-Id': ORG,
      'Sec-Fetch-Site': 'same-origin',
      Origin: api.url,
      Cookie: cookie,
      ...headers,
    },
  });

describe('a call with the session cookie', () => {
  test('streams the answer to a page of this service, and no cookie reaches the provider', async () => {
    upstream.behave(events([...STREAM, ...LAST]));
    const { trace_id, headers } = aTrace();
    const answer = await asPage(headers);
    expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'text/event-stream; charset=utf-8']);
    expect(answer.text).toContain('巴黎');
    expect(upstream.reached[0]?.rawHeaders.join()).not.toMatch(/svc_session|cookie/i);
    expect(await spanOf(trace_id)).toMatchObject({ outcome: 'success', input_tokens: 1000, output_tokens: 500 });
  });

  test('is refused with 403 when a page of another origin sends it', async () => {
    upstream.behave(events([...STREAM, ...LAST]));
    for (const headers of [
      { 'Sec-Fetch-Site': 'cross-site', Origin: 'https://evil.example' },
      { 'Sec-Fetch-Site': 'same-site', Origin: 'https://neighbour.example' },
      { 'Sec-Fetch-Site': undefined, Origin: undefined },
    ])
      expect((await asPage(headers)).status).toBe(403);
    expect(upstream.reached).toEqual([]);
  });

  test('needs the role member in the organization that X-Org-Id names', async () => {
    upstream.behave(events([...STREAM, ...LAST]));
    const viewer = await makeMember(api, 'viewer');
    const refused = await asPage({ Cookie: `svc_session=${viewer.token}` });
    expect([refused.status, refused.text]).toEqual([403, expect.stringContaining('gateway:invoke') as string]);
    expect((await asPage({ 'X-Org-Id': OTHER_ORG })).status).toBe(403);
    expect((await asPage({ 'X-Org-Id': undefined })).status).toBe(422);
    expect((await asPage({ Cookie: 'svc_session=aGk.aGk.aGk' })).status).toBe(401);
    expect(upstream.reached).toEqual([]);
    expect((await asPage({ Cookie: `svc_session=${await tokenOf({ sub: OWNER })}` })).status).toBe(200);
  });
});

describe('a call that names a prompt', () => {
  test('records its name, version and variables, so that the trace can be replayed', async () => {
    upstream.behave(events([...STREAM, ...LAST]));
    const variables = { city: 'Zürich', count: 2, nested: { a: [1] } };
    const { trace_id, headers } = aTrace({
      'X-Service-Prompt-Name': 'support/answer',
      'X-Service-Prompt-Version': '3',
      'X-Service-Prompt-Variables': JSON.stringify(variables).replace('ü', '\\u00fc'),
    });
    expect((await asPage(headers)).status).toBe(200);
    expect(attributesOf(await spanOf(trace_id))).toMatchObject({
      prompt_name: 'support/answer',
      prompt_version: '3',
      prompt_variables: variables,
    });
    const { json } = await call(api, 'GET', '/v1/prompts/support%2Fanswer/usage');
    expect(json?.['data']).toMatchObject({ calls: 1, versions: [{ version: '3', calls: 1 }] });
  });

  test.each([
    ['X-Service-Prompt-Name', 'x'.repeat(513)],
    ['X-Service-Prompt-Version', 'x'.repeat(513)],
    ['X-Service-Prompt-Variables', '[1]'],
    ['X-Service-Prompt-Variables', '{"a":'],
    ['X-Service-Prompt-Variables', JSON.stringify({ a: 'x'.repeat(8192) })],
  ])('is refused with 422 when %s cannot be read', async (name, value) => {
    const answer = await asPage({ [name]: value });
    expect([answer.status, answer.text]).toEqual([422, expect.stringContaining(name) as string]);
  });
});
