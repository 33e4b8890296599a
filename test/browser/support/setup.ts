// Global set-up of the browser tests: finds Chromium, starts one whole service with the model of the
// tests behind it, logs one person in, and fills it by `npm run demo` and with judges, evals and a
// dataset. Tests get addresses, the session and the browser through inject(). The service and its
// folder are removed afterwards, also when a test failed.
import type { TestProject } from 'vitest/node';
import { type Chromium, findChromium } from '../../support/chromium/install.ts';
import { stopServices } from '../../support/service_process.ts';
import { type Judged, makeJudged } from './judged.ts';
import { type PortalService, sendDemo, startPortalService } from './portal_service.ts';
import { startScriptedModel } from './scripted_model.ts';

declare module 'vitest' {
  export interface ProvidedContext {
    chromium: Chromium;
    portal: PortalService;
    judged: Judged;
  }
}

/** Vitest's global set-up: starts the service and returns the function that stops it. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  project.provide('chromium', await findChromium(console.log));
  const model = await startScriptedModel();
  const stop = async (): Promise<void> => {
    await stopServices();
    await model.close();
  };
  try {
    const portal = await startPortalService(model.url);
    project.provide('portal', portal);
    await sendDemo(portal);
    project.provide('judged', await makeJudged(portal));
  } catch (error) {
    await stop();
    throw error;
  }
  return stop;
}
