// Text that a start prints: the address, where the secrets are, and on the first start the secrets
// and commands to try. The caller prints it to the terminal only, never to a log file.
export interface BannerFacts {
  baseUrl: string;
  /** Address of the portal: a login link where there are such; null where no portal is served. */
  portal: string | null;
  orgId: string;
  /** API key; null when a setting of a production service gave it, as it must not be shown. */
  apiKey: string | null;
  /** True if a setting gave the key, rather than the secrets file. */
  apiKeyGiven: boolean;
  /**
   * This secret and the next one are null when a setting gave them; the operator's own values are
   * not shown.
   */
  adminToken: string | null;
  analystPassword: string | null;
  /** http://host:port of the embedded ClickHouse; null with an external one. */
  clickhouse: string | null;
  secretsFile: string;
  /** True if the secrets have not been shown before. */
  first: boolean;
  seconds: number;
}

const PREFIX_CHARS = 12;

/** Returns the lines of a start. */
export function banner(facts: BannerFacts): string {
  const { baseUrl, orgId, first, secretsFile, seconds } = facts;
  const row = (name: string, value: string): string => `  ${name.padEnd(14)}${value}`;
  const secret = (value: string | null, setting: string, field: string): string =>
    value === null ? `as given by ${setting}` : first ? value : `in ${secretsFile} (${field})`;
  const lines = [
    '',
    `Millrace is ready (${seconds.toFixed(1)} s).`,
    '',
    ...(facts.portal === null ? [] : [row('portal', facts.portal)]),
    row('address', `${baseUrl}   (documentation at ${baseUrl}/docs)`),
    row('org', orgId),
    row('API key', shownKey(facts)),
    row('admin token', secret(facts.adminToken, 'SERVICE_ADMIN_TOKEN', 'admin_token')),
  ];
  if (facts.clickhouse !== null) {
    lines.push(
      row(
        'analysts',
        `${facts.clickhouse}/play   user analyst, password ${secret(facts.analystPassword, 'SERVICE_CLICKHOUSE_ANALYST_PASSWORD', 'analyst_password')}`,
      ),
    );
  }
  if (first)
    lines.push('', 'Send an event:', '', `  ${sendLine(facts)}`, '', 'See its trace:', '', `  ${listLine(facts)}`);
  return [...lines, '', 'demo: npm run demo', ''].join('\n');
}

function shownKey({ apiKey, apiKeyGiven, first, secretsFile }: BannerFacts): string {
  const given = 'as given by SERVICE_BOOTSTRAP_API_KEY';
  if (apiKey === null) return given;
  if (apiKeyGiven) return first ? `${apiKey}   (${given})` : given;
  return first
    ? `${apiKey}   (shown once; kept in ${secretsFile})`
    : `${apiKey.slice(0, PREFIX_CHARS)}…   (in ${secretsFile}, api_key)`;
}

/** Returns the key as a shell accepts it: the key itself, or the variable that the operator set. */
const shellKey = (apiKey: string | null): string => apiKey ?? '$SERVICE_BOOTSTRAP_API_KEY';

function sendLine({ baseUrl, orgId, apiKey }: BannerFacts): string {
  const event = {
    request: { model: 'gpt-4o-mini', messages: [{ role: 'user', content: 'What is a millrace?' }] },
    response: {
      id: 'first',
      model: 'gpt-4o-mini',
      choices: [
        {
          index: 0,
          message: { role: 'assistant', content: 'The channel that brings water to a mill wheel.' },
          finish_reason: 'stop',
        },
      ],
      usage: { prompt_tokens: 12, completion_tokens: 11, total_tokens: 23 },
    },
    duration_ms: 420,
    outcome: 'success',
  };
  return `curl -s ${baseUrl}/orgs/${orgId}/ingest/chatcompletion -H "X-Org-Api-Key: ${shellKey(apiKey)}" -H "X-Org-Id: ${orgId}" -H "Content-Type: application/json" -d '${JSON.stringify(event)}'`;
}

const listLine = ({ baseUrl, orgId, apiKey }: BannerFacts): string =>
  `curl -s ${baseUrl}/v1/traces -H "Authorization: Bearer ${shellKey(apiKey)}" -H "X-Org-Id: ${orgId}"`;
