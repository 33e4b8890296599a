// A component whose code is loaded when it is first rendered, with something else in its place until then. React's own
// `lazy` suspends instead, and React holds back what follows a fallback until 300 ms have passed since the fallback was
// shown (FALLBACK_THROTTLE_MS of react-reconciler): every page whose code came within 20 ms would appear after 320.
import { type ComponentType, type ReactElement, type ReactNode, useSyncExternalStore } from 'react';

type Loaded<Props> = { component: ComponentType<Props> } | { error: unknown };

/**
 * Returns the component. It throws while rendering what `load` rejects with, for an error boundary.
 * @param load returns a module whose default export is the component; called once
 * @param meanwhile returns what is shown until the code is there
 */
export function deferred<Props extends object>(
  load: () => Promise<{ default: ComponentType<Props> }>,
  meanwhile: (props: Props) => ReactNode = () => null,
): ComponentType<Props> {
  let loaded: Loaded<Props> | null = null;
  let begun = false;
  const listeners = new Set<() => void>();
  const end = (outcome: Loaded<Props>): void => {
    loaded = outcome;
    for (const listener of listeners) listener();
  };
  const begin = (): void => {
    if (begun) return;
    begun = true;
    load().then(
      (module) => {
        end({ component: module.default });
      },
      (error: unknown) => {
        end({ error });
      },
    );
  };
  const subscribe = (listener: () => void): (() => void) => {
    listeners.add(listener);
    return () => {
      listeners.delete(listener);
    };
  };
  return function Deferred(props: Props): ReactElement {
    begin();
    const outcome = useSyncExternalStore(subscribe, () => loaded);
    if (outcome === null) return <>{meanwhile(props)}</>;
    if ('error' in outcome) throw outcome.error;
    const Component = outcome.component;
    return <Component {...props} />;
  };
}
