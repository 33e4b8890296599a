// The `<http_handlers>` section of the embedded engine: the list of requests that its HTTP port
// answers. Pure: takes user names, returns XML. The engine's user `default` must exist without a
// password, because the engine's own start script runs as this user, and a request that names no
// user counts as `default`. A request therefore has to name a known user in a header, which a web
// page of another origin cannot set without a preflight that the engine does not answer. Everything
// else gets 404, including /dashboard, /webterminal and /replicas_status. These rules cannot see
// the URL's parameters, and since 26.7 `?user=default` overrides Basic credentials
// (ClickHouse/ClickHouse#108980): DEFAULT_USER_SESSIONS_MAX in config.ts closes that way.

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
const BITS_PER_BYTE = 8;
const BITS_PER_CHAR = 6;

/**
 * Answers from /ping carry this header with the engine's display name, which tells the engine from
 * another server on its port.
 */
export const ENGINE_HEADER = 'X-Millrace-Engine';

/**
 * Returns a regular expression (RE2) for the credentials of HTTP Basic authentication of one user
 * with any password.
 * @param user a name in ASCII
 */
export function basicCredentialsPattern(user: string): string {
  const known = Buffer.from(`${user}:`, 'latin1');
  const whole = Math.floor((known.length * BITS_PER_BYTE) / BITS_PER_CHAR);
  const fixed = known.toString('base64').slice(0, whole);
  const bitsLeft = known.length * BITS_PER_BYTE - whole * BITS_PER_CHAR;
  if (bitsLeft === 0) return `${fixed}[A-Za-z0-9+/]*={0,2}`;
  // The first byte of the password fills the rest of the next character, so that character has
  // several possible values.
  const first = ((known.at(-1) ?? 0) & ((1 << bitsLeft) - 1)) << (BITS_PER_CHAR - bitsLeft);
  const values = ALPHABET.slice(first, first + (1 << (BITS_PER_CHAR - bitsLeft)));
  return `${fixed}[${values}][A-Za-z0-9+/]*={0,2}`;
}

/**
 * Returns the `<http_handlers>` section.
 * @param users names of the users that log in with a password
 * @param displayName value of ENGINE_HEADER
 */
export function httpHandlersXml(users: readonly string[], displayName: string): string {
  const query = '<handler><type>dynamic_query_handler</type><query_param_name>query</query_param_name></handler>';
  const byHeader = (name: string, pattern: string): string =>
    `<rule><headers><${name}>regex:${pattern}</${name}></headers>${query}</rule>`;
  return `<http_handlers>
    <rule>
      <url>/ping</url><methods>GET,HEAD</methods>
      <handler>
        <type>static</type><status>200</status><content_type>text/plain; charset=UTF-8</content_type>
        <http_response_headers><${ENGINE_HEADER}>${displayName}</${ENGINE_HEADER}></http_response_headers>
        <response_content>Ok.&#10;</response_content>
      </handler>
    </rule>
    <rule><url>/play</url><methods>GET,HEAD</methods><handler><type>play</type></handler></rule>
    ${byHeader('X-ClickHouse-User', `(${users.join('|')})`)}
    ${byHeader('Authorization', `(?i:Basic) (${users.map(basicCredentialsPattern).join('|')})`)}
    ${/* The page /play sends this header, and the user and the password as parameters. */ byHeader('Authorization', 'never')}
  </http_handlers>`;
}
