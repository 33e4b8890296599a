// Every answer to an analyst carries a request id of its own.
import { expect, it } from 'vitest';
import { type AnalystsDeps, createAnalystsHandler } from '../../../api/telemetry/analysts/handler.ts';
import { listening } from '../../support/listening.ts';

it("answers of the analysts' endpoint carry a request id: /ping, and a rejection", async () => {
  // No request of this test gets past the login.
  const deps = { edge: { observe: () => undefined }, login: () => null } as unknown as AnalystsDeps;
  const ids = await listening(createAnalystsHandler(deps), async (url) => {
    const heard = [];
    for (const [path, status] of [
      ['/ping', 200],
      ['/?user=u&query=SELECT+1', 403],
    ] as const) {
      const response = await fetch(url + path);
      expect([path, response.status]).toEqual([path, status]);
      await response.text();
      heard.push(response.headers.get('x-request-id'));
    }
    return heard;
  });
  for (const id of ids) expect(id).toMatch(/^req_[0-9a-f]{32}$/);
  expect(new Set(ids).size).toBe(2);
});
