// Headers of the portal's page and files. The page loads and runs nothing but the portal's own files, is shown in no
// frame, and reaches nothing but this service.

const OFF = [
  'accelerometer',
  'autoplay',
  'browsing-topics',
  'camera',
  'display-capture',
  'encrypted-media',
  'geolocation',
  'gyroscope',
  'hid',
  'magnetometer',
  'microphone',
  'midi',
  'payment',
  'publickey-credentials-get',
  'serial',
  'usb',
  'xr-spatial-tracking',
];

/**
 * Policy of the page. The one Trusted Types policy makes the addresses of the portal's own workers; no code writes HTML
 * text.
 */
const PAGE_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data: blob:",
  "font-src 'self'",
  "connect-src 'self'",
  "worker-src 'self'",
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  'trusted-types own-workers',
].join('; ');

/** Headers of every page, also of the one that waits for the build. X-Content-Type-Options and others are on every answer of the service. */
export const PAGE_HEADERS: Readonly<Record<string, string>> = {
  'Content-Type': 'text/html; charset=utf-8',
  'Cache-Control': 'no-store',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Permissions-Policy': OFF.map((feature) => `${feature}=()`).join(', '),
};

export const PORTAL_PAGE_HEADERS: Readonly<Record<string, string>> = {
  ...PAGE_HEADERS,
  'Content-Security-Policy': PAGE_POLICY,
};

/** Headers of the files. Their names hold a hash of their content. */
export const FILE_HEADERS: Readonly<Record<string, string>> = {
  'Cache-Control': 'public, max-age=31536000, immutable',
  'Cross-Origin-Resource-Policy': 'same-origin',
  // A worker takes the policy of its own file, not that of the page.
  'Content-Security-Policy': "default-src 'none'; script-src 'self'; connect-src 'self'",
};
