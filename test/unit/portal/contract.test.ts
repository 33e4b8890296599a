// The generated types of the portal's requests match the routes of the API.
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { CONTRACT_FILE, contractDocument, contractTypes } from '../../support/portal_contract.ts';

test('api/portal/web/client/contract.d.ts is current; npm run portal:types regenerates it', async () => {
  const isCurrent = readFileSync(CONTRACT_FILE, 'utf8') === (await contractTypes(await contractDocument()));
  // A comparison of the texts themselves would print thousands of lines.
  expect(isCurrent, 'a route has changed: run npm run portal:types').toBe(true);
});
