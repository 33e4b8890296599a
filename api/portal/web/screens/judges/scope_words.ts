// The scope of a judge in words. Pure.

interface Scope {
  source_format?: readonly string[] | undefined;
  agent_id?: readonly string[] | undefined;
  tags?: readonly string[] | undefined;
}

/** Returns the values that the scope names, or that it takes all traces. */
export function scopeWords({ scope }: { scope: Scope }): string {
  const parts = [...(scope.agent_id ?? []), ...(scope.tags ?? []), ...(scope.source_format ?? [])];
  return parts.length === 0 ? 'All traces' : parts.join(', ');
}
