// X-Service-Api-Version: a client may pin a minor version. A version that this release cannot
// honour is rejected instead of misread.
import { API_VERSION } from './envelope.ts';
import { ApiError } from './errors.ts';

export const VERSION_HEADER = 'x-service-api-version';
const PIN = /^(\d{1,6})\.(\d{1,6})(?:\.(?:\d{1,6}|x))?$/;
const [MAJOR, MINOR] = API_VERSION.split('.').map(Number) as [number, number];

/**
 * Checks a pinned version: it must have this major and at most this minor version.
 * @throws ApiError unsupported_api_version
 */
export function checkPinnedVersion(pinned: string | string[] | undefined): void {
  if (pinned === undefined) return;
  const match = PIN.exec(String(pinned).trim());
  if (match !== null && Number(match[1]) === MAJOR && Number(match[2]) <= MINOR) return;
  throw new ApiError(
    'unsupported_api_version',
    `X-Service-Api-Version: must be ${MAJOR}.${MINOR} or an older minor; this service has ${API_VERSION}`,
  );
}
