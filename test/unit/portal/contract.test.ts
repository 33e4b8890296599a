// The generated types of requests match the routes of the API.
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import {
  CONTRACT_FILE,
  contractDocument,
  contractTypes,
  SDK_CONTRACT_FILE,
  sdkContractTypes,
} from '../../support/portal_contract.ts';

test.each([
  ['api/portal/web/client/contract.d.ts', CONTRACT_FILE, contractTypes],
  ['api/sdk/src/contract.ts', SDK_CONTRACT_FILE, sdkContractTypes],
])('%s is current; npm run portal:types regenerates it', async (_, file, typesOf) => {
  const isCurrent = readFileSync(file, 'utf8') === (await typesOf(await contractDocument()));
  // A comparison of the texts themselves would print thousands of lines.
  expect(isCurrent, 'a route has changed: run npm run portal:types').toBe(true);
});
