// The whole service for end-to-end tests. When a test file ends, every service that it started is
// stopped and every folder removed, also when a test failed.
import { afterAll } from 'vitest';
import { stopServices } from './service_process.ts';

export { type ChildName, type TestService, runStart, serviceDir, startService } from './service_process.ts';

afterAll(stopServices);
