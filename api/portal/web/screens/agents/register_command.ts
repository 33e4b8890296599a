// The command that registers an agent with a token. Pure.

interface Registration {
  origin: string;
  org_id: string;
  /** null: a placeholder stands for the id. */
  agent_id: string | null;
  register_token: string;
}

/** Returns the command, for a shell; quotes within the id are safe. */
export function registerCommand({ origin, org_id, agent_id, register_token }: Registration): string {
  const id = agent_id ?? 'my-agent';
  const body = JSON.stringify(
    { agent_id: id, name: id, framework: 'custom', version: '1.0.0', register_token },
    null,
    2,
  );
  return [
    `curl -s '${origin}/orgs/${encodeURIComponent(org_id)}/agents/register' \\`,
    `  -H "X-Org-Api-Key: $MILLRACE_API_KEY" -H 'Content-Type: application/json' \\`,
    `  -d '${body.replaceAll("'", String.raw`'\''`)}'`,
  ].join('\n');
}
