// `npm run login`: prints another login link of the service that `npm start` runs with this data folder. The link logs in
// once, within ten minutes, as the owner of the first organization.
import { makeLoginLink } from '../launch/login_link.ts';
import { localNatsUrl, readAddresses } from '../launch/secrets.ts';
import { hasLocalLogin, parseEnv } from '../platform/env.ts';
import { leave } from '../platform/leave.ts';

async function main(): Promise<void> {
  const env = parseEnv(process.env);
  if (!hasLocalLogin(env))
    throw new Error(
      'login links work in development without SERVICE_JWT_JWKS_URL; paste a token of the identity provider into the login page',
    );
  const { base_url: baseUrl } = readAddresses(env.SERVICE_DATA_DIR);
  const natsUrl = env.SERVICE_NATS_URL ?? localNatsUrl(env.SERVICE_DATA_DIR);
  const link = await makeLoginLink({ baseUrl, natsUrl }).catch((cause: unknown) => {
    throw new Error(`the service of ${env.SERVICE_DATA_DIR} does not run; start it first (npm start)`, { cause });
  });
  process.stdout.write(`${link}\n`);
  if (process.stdout.isTTY) process.stderr.write('Open it within 10 minutes; it logs in once.\n');
}

try {
  await main();
  leave(0);
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  leave(1);
}
