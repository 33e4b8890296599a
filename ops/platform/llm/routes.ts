// Routes models to upstreams: the routing table of SERVICE_GATEWAY_ROUTES and the upstreams of
// SERVICE_LLM_BASE_URL and SERVICE_ANTHROPIC_BASE_URL. Takes the text of the file and the environment
// that holds its keys; returns targets in the order in which they are tried, drawn by weight where
// the table has weights. A file that cannot be used stops the start with a message that names the
// place and contains no key.
import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { Circuit } from './circuit.ts';

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
const WEIGHT_MAX = 1000;

/** The API that an upstream speaks. The gateway translates none into another. */
export type GatewayApi = 'openai' | 'anthropic';

/** An upstream, as a call uses it. */
export interface GatewayTarget {
  api: GatewayApi;
  /** caller: the caller's own credential goes upstream, in the place of a key of the operator. */
  credential: 'operator' | 'caller';
  /** Base URL of the API, including /v1, without a slash at its end. */
  base_url: URL;
  /** API key; null sends none, as local upstreams accept. */
  api_key: string | null;
  timeout_ms: number;
  /** Model that is requested from this upstream instead of the caller's; null: the caller's. */
  model: string | null;
  /** Share of the calls that try this upstream first; 0 for a fallback. Null: the written order applies. */
  weight: number | null;
  circuit: Circuit;
}

interface GatewayRoute {
  matches: (model: string) => boolean;
  /** All targets speak the same API. */
  targets: readonly GatewayTarget[];
}

export interface GatewayRoutes {
  /**
   * Returns the targets of a model that speak the API, in the order in which they are tried; empty
   * where none is configured.
   */
  targetsOf: (model: string, api: GatewayApi) => readonly GatewayTarget[];
  /** Returns the targets of requests that name no model. */
  standardOf: (api: GatewayApi) => readonly GatewayTarget[];
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

/** A route sets these for all its upstreams, or an upstream for itself. */
const manner = {
  api: z.enum(['openai', 'anthropic']).nullish(),
  credential: z.enum(['operator', 'caller']).nullish(),
};

const table = z
  .array(
    z.strictObject({
      model: z.string().min(1).max(NAME_LENGTH_MAX),
      ...manner,
      upstreams: z
        .array(
          z.strictObject({
            base_url: baseUrl,
            ...manner,
            weight: z.int().min(0).max(WEIGHT_MAX).nullish(),
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
  return parsed.data.flatMap((route) => routesOf(route, keys));
}

/** Returns the routes of one entry: one for each API that its upstreams speak. */
function routesOf(
  { model, api, credential, upstreams }: z.infer<typeof table>[number],
  keys: Readonly<Record<string, string | undefined>>,
): GatewayRoute[] {
  const targets = upstreams.map((upstream): GatewayTarget => {
    const spoken = upstream.api ?? api ?? 'openai';
    return {
      api: spoken,
      credential: upstream.credential ?? credential ?? 'operator',
      base_url: baseOf(upstream.base_url, spoken),
      api_key: keyOf(upstream.api_key_env ?? null, keys),
      timeout_ms: upstream.timeout_ms,
      model: upstream.model ?? null,
      weight: upstream.weight ?? null,
      circuit: new Circuit(),
    };
  });
  const matches = globOf(model);
  return (['openai', 'anthropic'] as const)
    .map((spoken) => ({ matches, targets: targets.filter((target) => target.api === spoken) }))
    .filter((route) => route.targets.length > 0);
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

/**
 * Returns the base URL of an upstream. Clients of Anthropic's API write it without the version, so
 * /v1 is added there where it is missing.
 */
function baseOf(text: string, api: GatewayApi): URL {
  const url = cleanUrl(text);
  return api === 'openai' || /\/v\d+$/.test(url.pathname) ? url : cleanUrl(`${url.href.replace(/\/$/, '')}/v1`);
}

export interface RoutesSettings {
  SERVICE_GATEWAY_ROUTES?: string | undefined;
  SERVICE_LLM_BASE_URL?: string | undefined;
  SERVICE_LLM_API_KEY?: string | undefined;
  SERVICE_ANTHROPIC_BASE_URL?: string | undefined;
  SERVICE_ANTHROPIC_API_KEY?: string | undefined;
}

/**
 * Combines the table with the upstreams of the settings: the first route of an API that matches a
 * model takes it, and the settings' upstream of that API takes what no route matches.
 * @throws RoutesError when the file cannot be read or used
 */
export function openRoutes(
  settings: RoutesSettings,
  keys: Readonly<Record<string, string | undefined>>,
): GatewayRoutes {
  const file = settings.SERVICE_GATEWAY_ROUTES;
  const routes = file === undefined ? [] : parseRoutes(readTable(file), keys);
  const own: Readonly<Record<GatewayApi, readonly GatewayTarget[]>> = {
    openai: ownTargets('openai', settings.SERVICE_LLM_BASE_URL, settings.SERVICE_LLM_API_KEY),
    anthropic: ownTargets('anthropic', settings.SERVICE_ANTHROPIC_BASE_URL, settings.SERVICE_ANTHROPIC_API_KEY),
  };
  const routeOf = (api: GatewayApi, matches: (route: GatewayRoute) => boolean) =>
    routes.find((route) => route.targets[0]?.api === api && matches(route))?.targets;
  return {
    targetsOf: (model, api) => drawn(routeOf(api, ({ matches }) => matches(model)) ?? own[api]),
    standardOf: (api) => (own[api].length > 0 ? own[api] : (routeOf(api, () => true) ?? [])),
  };
}

function ownTargets(api: GatewayApi, base: string | undefined, api_key: string | undefined): GatewayTarget[] {
  if (base === undefined) return [];
  return [
    {
      api,
      credential: 'operator',
      base_url: baseOf(base, api),
      api_key: api_key ?? null,
      timeout_ms: TIMEOUT_MS,
      model: null,
      weight: null,
      circuit: new Circuit(),
    },
  ];
}

/**
 * Returns the targets in the order of one call. Without weights it is the written order. With
 * weights the first is drawn in proportion to them, the others follow in the written order, and
 * those with weight 0 come last.
 * @param random returns a number from 0 to below 1
 */
export function drawn(targets: readonly GatewayTarget[], random: () => number = Math.random): readonly GatewayTarget[] {
  if (targets.length < 2 || targets.every(({ weight }) => weight === null)) return targets;
  const weighted = targets.filter((target) => weightOf(target) > 0);
  let left = random() * weighted.reduce((sum, target) => sum + weightOf(target), 0);
  const first = weighted.find((target) => (left -= weightOf(target)) < 0) ?? weighted[0];
  if (first === undefined) return targets;
  const others = weighted.filter((target) => target !== first);
  return [first, ...others, ...targets.filter((target) => weightOf(target) === 0)];
}

const weightOf = ({ weight }: GatewayTarget): number => weight ?? 1;

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
