// Starts the portal's own workers. The page requires Trusted Types, and this policy is the only one
// that it allows: it makes addresses of workers that this build contains, and nothing else.

interface ScriptUrlPolicy {
  createScriptURL: (address: string) => string;
}
interface TrustedTypes {
  createPolicy: (name: string, rules: ScriptUrlPolicy) => ScriptUrlPolicy;
}

const RULES: ScriptUrlPolicy = {
  createScriptURL: (address) => {
    if (new URL(address, location.href).origin !== location.origin)
      throw new TypeError(`Not an own worker: ${address}`);
    return address;
  },
};
let policy: ScriptUrlPolicy | null = null;

/**
 * Starts a worker of this build.
 * @param address from an import that ends in `?worker&url`
 */
export function ownWorker(address: string): Worker {
  policy ??= (globalThis as { trustedTypes?: TrustedTypes }).trustedTypes?.createPolicy('own-workers', RULES) ?? RULES;
  return new Worker(policy.createScriptURL(address), { type: 'module' });
}
