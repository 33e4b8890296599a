// Global set-up of the browser tests: finds Chromium, starts one whole service, logs one person in,
// and fills the service by `npm run demo`. Tests get addresses, the session and the browser through
// inject(). The service and its folder are removed afterwards, also when a test failed.
import type { TestProject } from 'vitest/node';
import { type Chromium, findChromium } from '../../support/chromium/install.ts';
import { stopServices } from '../../support/service_process.ts';
import { type PortalService, sendDemo, startPortalService } from './portal_service.ts';

declare module 'vitest' {
  export interface ProvidedContext {
    chromium: Chromium;
    portal: PortalService;
  }
}

/** Vitest's global set-up: starts the service and returns the function that stops it. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  project.provide('chromium', await findChromium(console.log));
  try {
    const portal = await startPortalService();
    project.provide('portal', portal);
    await sendDemo(portal);
  } catch (error) {
    await stopServices();
    throw error;
  }
  return stopServices;
}
