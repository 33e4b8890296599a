// Structured logs of a process: one JSON line a record on stdout.
// Guarantees: fields that carry credentials by name are blanked, and so are passwords inside URLs of errors.
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

/** Returns the text without credentials: user:password@ in URLs, and API keys. Both searches begin at a fixed string, so they are linear. */
export const redactText = (text: string): string =>
  text.replace(/:\/\/[^\s/@]+@/g, '://***@').replace(/sk_svc_[A-Za-z0-9_-]+/g, 'sk_svc_***');

function redactError(error: Error): unknown {
  const { message, stack, ...rest } = stdSerializers.err(error);
  return { ...rest, message: redactText(message), stack: redactText(stack) };
}

/** Records that wait to be written; beyond, records are dropped. */
const WAITING_BYTES_MAX = 1024 * 1024;

/** Where records go. A disk that is full costs records, never the process. */
function output(): DestinationStream {
  const stream = pino.destination({ dest: 1, sync: true, maxLength: WAITING_BYTES_MAX });
  stream.on('error', () => undefined);
  return stream;
}

/** A logger that names its process. level: trace, debug, info, warn, error or silent. */
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
