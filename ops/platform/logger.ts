// Structured logs of a process: one JSON record per line on stdout. Guarantees: fields whose names
// mark credentials are blanked, and so are passwords in the URLs of errors.
import { type DestinationStream, type Logger as PinoLogger, pino, stdSerializers } from 'pino';

export type Logger = PinoLogger;

const SECRET_FIELDS = [
  'token',
  'password',
  'secret',
  'authorization',
  'raw_key',
  'api_key',
  'cookie',
  'x-org-api-key',
  'SERVICE_ADMIN_TOKEN',
];
const paths = SECRET_FIELDS.flatMap((field) => [`["${field}"]`, `*["${field}"]`, `*.*["${field}"]`]);

/**
 * Returns the text without credentials: user:password@ in URLs, and API keys. Both searches begin
 * at a fixed string, so their time is linear.
 */
export const redactText = (text: string): string =>
  text.replace(/:\/\/[^\s/@]+@/g, '://***@').replace(/sk_svc_[A-Za-z0-9_-]+/g, 'sk_svc_***');

function redactError(error: Error): unknown {
  const { message, stack, ...rest } = stdSerializers.err(error);
  return { ...rest, message: redactText(message), stack: redactText(stack) };
}

/** Maximum bytes of unwritten records; further records are dropped. */
const WAITING_BYTES_MAX = 1024 * 1024;

/** Returns the destination of records. A full disk costs records, never the process. */
function output(): DestinationStream {
  const stream = pino.destination({ dest: 1, sync: true, maxLength: WAITING_BYTES_MAX });
  stream.on('error', () => undefined);
  return stream;
}

/**
 * Returns a logger that names its process. @param level trace, debug, info, warn, error or silent
 */
export function createLogger(name: string, level: string): Logger {
  const options = {
    name,
    level,
    base: { name, pid: process.pid },
    redact: { paths, censor: '***' },
    serializers: { err: redactError, error: redactError },
  };
  return pino(options, output());
}
