/** Makes a component of one that is loaded when it is first drawn. Until then it draws a quiet line, and it says if it could not be loaded. */

import type { ComponentType } from 'preact';
import { useEffect, useState } from 'preact/hooks';

export function lazy<Props extends object>(load: () => Promise<ComponentType<Props>>): ComponentType<Props> {
  let loaded: ComponentType<Props> | undefined;
  return function Lazy(props: Props) {
    const [state, setState] = useState<'loading' | 'there' | 'failed'>(loaded ? 'there' : 'loading');
    useEffect(() => {
      if (loaded) return;
      load()
        .then((component) => {
          loaded = component;
          setState('there');
        })
        .catch(() => setState('failed'));
    }, []);
    if (loaded) {
      const Component = loaded;
      return <Component {...props} />;
    }
    if (state === 'failed') return <p class="quiet bad">This part of the page could not be loaded. Reload the page.</p>;
    return <p class="quiet" aria-hidden="true" />;
  };
}
