// The OpenAPI document of deliveries: each event of the catalog, its payload and the headers.
import { expect, test } from 'vitest';
import { type JsonObject, openApiDocument } from '../../../api/openapi/document.ts';
import { EVENT_CATALOG, TEST_EVENT } from '../../../schemas/events/catalog.ts';

const document = openApiDocument([]);

test('every event of the catalog is documented as a webhook, with its payload and the headers of a delivery', () => {
  const webhooks = document['webhooks'] as Record<string, { post: JsonObject }>;
  expect(Object.keys(webhooks).toSorted()).toEqual([...Object.keys(EVENT_CATALOG), TEST_EVENT].toSorted());
  for (const [name, { post }] of Object.entries(webhooks)) {
    const text = JSON.stringify(post['requestBody']);
    expect(text).toContain(`"const":"${name}"`);
    expect(
      (post['parameters'] as { name: string; required: boolean }[]).map(({ name: header, required }) => [
        header,
        required,
      ]),
    ).toEqual([
      ['X-Service-Event-Id', true],
      ['X-Service-Signature', true],
      ['X-Service-Attempt', true],
    ]);
  }
});
