// The text form of metrics that Prometheus reads.

/**
 * Joins the expositions of several processes into one, with the samples of a family together under
 * one HELP and TYPE, as Prometheus requires.
 */
export function joinExpositions(texts: readonly string[]): string {
  const families = new Map<string, { head: string[]; samples: string[] }>();
  for (const text of texts) {
    let family: { head: string[]; samples: string[] } | undefined;
    let known = false;
    for (const line of text.split('\n')) {
      if (line === '') continue;
      if (line.startsWith('# HELP ') || line.startsWith('# TYPE ')) {
        const name = line.split(' ')[2] ?? '';
        if (line.startsWith('# HELP ')) {
          known = families.has(name);
          family = families.get(name) ?? { head: [], samples: [] };
          families.set(name, family);
        }
        if (!known) family?.head.push(line);
      } else if (!line.startsWith('#')) {
        family?.samples.push(line);
      }
    }
  }
  return [...families.values()].flatMap(({ head, samples }) => [...head, ...samples]).join('\n') + '\n';
}
