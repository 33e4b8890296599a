// Routes models to upstreams: the routing table of SERVICE_GATEWAY_ROUTES and the one upstream of
// SERVICE_LLM_BASE_URL. Takes the text of the file and the environment that holds its keys; returns
// targets in the order in which they are tried. A file that cannot be used stops the start with a
// message that names the place and contains no key.
import { readFileSync } from 'node:fs';
import { z } from 'zod';

/**
 * Default maximum time until the first byte of an answer, and between two bytes: as long as
 * OpenAI's clients wait.
 */
const TIMEOUT_MS = 600_000;
const TIMEOUT_MS_MAX = 3_600_000;
const ROUTES_MAX = 1000;
/**
 * Maximum length of a model name that is matched, because matching takes time that grows with it.
 * Longer names match nothing.
 */
const NAME_LENGTH_MAX = 1024;
const UPSTREAMS_MAX = 16;

/** An upstream, as a call uses it. */
export interface GatewayTarget {
  /** Base URL of the API, including /v1, without a slash at its end. */
  base_url: URL;
  /** API key; null sends none, as local upstreams accept. */
  api_key: string | null;
  timeout_ms: number;
  /** Model that is requested from this upstream instead of the caller's; null: the caller's. */
  model: string | null;
}

export interface GatewayRoute {
  matches: (model: string) => boolean;
  targets: readonly GatewayTarget[];
}

export interface GatewayRoutes {
  /**
   * Returns the targets of a model in the order in which they are tried; empty where none is
   * configured.
   */
  targetsOf: (model: string) => readonly GatewayTarget[];
  /** Targets of requests that name no model. */
  readonly standard: readonly GatewayTarget[];
}

/** The routing table cannot be used. */
export class RoutesError extends Error {}

const baseUrl = z.string().refine(
  (text) => {
    const url = URL.parse(text);
    return (
      url !== null &&
      ['http:', 'https:'].includes(url.protocol) &&
      url.username === '' &&
      url.search === '' &&
      url.hash === ''
    );
  },
  { error: 'must be a URL beginning with http:// or https://, without a user or a query' },
);

const table = z
  .array(
    z.strictObject({
      model: z.string().min(1).max(NAME_LENGTH_MAX),
      upstreams: z
        .array(
          z.strictObject({
            base_url: baseUrl,
            api_key_env: z
              .string()
              .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, { error: 'must be the name of an environment variable' })
              .nullish(),
            timeout_ms: z.int().min(1).max(TIMEOUT_MS_MAX).default(TIMEOUT_MS),
            model: z.string().min(1).max(NAME_LENGTH_MAX).nullish(),
          }),
        )
        .min(1)
        .max(UPSTREAMS_MAX),
    }),
  )
  .max(ROUTES_MAX);

/**
 * Returns a test of whole names against a glob: * stands for any characters, ? for one. A mismatch
 * returns to the last * alone, so the time is at most the length of the name times that of the
 * glob.
 */
export function globOf(pattern: string): (name: string) => boolean {
  const glob = Array.from(pattern);
  return (name) => name.length <= NAME_LENGTH_MAX && matchesGlob(glob, Array.from(name));
}

function matchesGlob(glob: readonly string[], name: readonly string[]): boolean {
  let [at, in_name] = [0, 0];
  /**
   * Position of the last * in the glob, and the end of the characters in the name that it stands
   * for.
   */
  let [star, star_end] = [-1, 0];
  while (in_name < name.length) {
    if (glob[at] === '*') {
      [star, star_end] = [at, in_name];
      at += 1;
    } else if (at < glob.length && (glob[at] === '?' || glob[at] === name[in_name])) {
      at += 1;
      in_name += 1;
    } else if (star >= 0) {
      star_end += 1;
      [at, in_name] = [star + 1, star_end];
    } else return false;
  }
  while (glob[at] === '*') at += 1;
  return at === glob.length;
}

/**
 * Reads a routing table.
 * @param keys the environment in which api_key_env is looked up
 * @throws RoutesError
 */
export function parseRoutes(text: string, keys: Readonly<Record<string, string | undefined>>): GatewayRoute[] {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (cause) {
    throw new RoutesError('SERVICE_GATEWAY_ROUTES: the file is no JSON', { cause });
  }
  const parsed = table.safeParse(json);
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    const place = (issue?.path ?? [])
      .map((part) => (typeof part === 'number' ? `[${part}]` : `.${String(part)}`))
      .join('');
    throw new RoutesError(`SERVICE_GATEWAY_ROUTES: ${place.replace(/^\./, '')}: ${issue?.message ?? 'is not valid'}`);
  }
  return parsed.data.map(({ model, upstreams }) => ({
    matches: globOf(model),
    targets: upstreams.map(({ base_url, api_key_env, timeout_ms, model: other }) => ({
      base_url: cleanUrl(base_url),
      api_key: keyOf(api_key_env ?? null, keys),
      timeout_ms,
      model: other ?? null,
    })),
  }));
}

function keyOf(name: string | null, keys: Readonly<Record<string, string | undefined>>): string | null {
  if (name === null) return null;
  const key = keys[name] ?? '';
  if (!/^[\x21-\x7e]+$/.test(key))
    throw new RoutesError(
      `SERVICE_GATEWAY_ROUTES: the environment variable ${name} holds no key (printable characters without spaces)`,
    );
  return key;
}

const cleanUrl = (text: string): URL => new URL(text.replace(/(?<!\/)\/+$/, ''));

export interface RoutesSettings {
  SERVICE_GATEWAY_ROUTES?: string | undefined;
  SERVICE_LLM_BASE_URL?: string | undefined;
  SERVICE_LLM_API_KEY?: string | undefined;
}

/**
 * Combines the table with the one upstream of the settings: the first route that matches a model
 * takes it, and the settings' upstream takes what no route matches.
 * @throws RoutesError when the file cannot be read or used
 */
export function openRoutes(
  settings: RoutesSettings,
  keys: Readonly<Record<string, string | undefined>>,
): GatewayRoutes {
  const file = settings.SERVICE_GATEWAY_ROUTES;
  const routes = file === undefined ? [] : parseRoutes(readTable(file), keys);
  const base = settings.SERVICE_LLM_BASE_URL;
  const own: GatewayTarget[] =
    base === undefined
      ? []
      : [
          {
            base_url: cleanUrl(base),
            api_key: settings.SERVICE_LLM_API_KEY ?? null,
            timeout_ms: TIMEOUT_MS,
            model: null,
          },
        ];
  return {
    targetsOf: (model) => routes.find(({ matches }) => matches(model))?.targets ?? own,
    standard: own.length > 0 ? own : (routes[0]?.targets ?? []),
  };
}

function readTable(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (cause) {
    throw new RoutesError(
      `SERVICE_GATEWAY_ROUTES: the file cannot be read (${cause instanceof Error ? cause.message : String(cause)})`,
      {
        cause,
      },
    );
  }
}
