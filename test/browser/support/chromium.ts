// Starts the headless Chromium of the browser tests, the pictures and the benchmark. Its flags make texts look the same
// on every machine: no hinting and no colour at the edges of letters, whatever the fonts settings of the system say.
import { type Browser, chromium } from 'playwright-core';
import type { Chromium } from '../../support/chromium/install.ts';

/** Starts it. The caller closes it. */
export const launchChromium = ({ executable, env }: Chromium): Promise<Browser> =>
  chromium.launch({
    executablePath: executable,
    env: { ...process.env, ...env },
    args: [
      // A container may have no user namespaces and a small /dev/shm. Pages are those of this service.
      '--no-sandbox',
      '--disable-dev-shm-usage',
      '--font-render-hinting=none',
      '--disable-lcd-text',
    ],
  });
