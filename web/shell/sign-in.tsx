/** Asks for the service's key or token where the service knows nobody by the browser's cookie. It is sent once and kept nowhere in the page. */

import { useState } from 'preact/hooks';
import { useApp } from './context.ts';

export function SignIn() {
  const { api, signedIn } = useApp();
  const [problem, setProblem] = useState<string>();
  const [isBusy, setBusy] = useState(false);

  async function submit(form: HTMLFormElement): Promise<void> {
    const credential = new FormData(form).get('credential');
    if (typeof credential !== 'string' || credential.trim() === '') return setProblem('Type the key first.');
    setBusy(true);
    try {
      await api.signIn(credential.trim());
      signedIn();
    } catch (error) {
      setProblem(error instanceof Error ? error.message : String(error));
    } finally {
      setBusy(false);
    }
  }

  return (
    <main class="sign-in">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void submit(event.currentTarget);
        }}
      >
        <h1>Sign in to Cuvette</h1>
        <label>
          Key or token of this service
          <input name="credential" type="password" autocomplete="current-password" aria-describedby="sign-in-hint" />
        </label>
        {problem && (
          <p class="bad" role="alert">
            {problem}
          </p>
        )}
        <button type="submit" class="primary" disabled={isBusy}>
          Sign in
        </button>
        <p class="quiet" id="sign-in-hint">
          On your own machine, open the address that <code>cuvette serve</code> or <code>cuvette ui</code> printed: it
          signs you in.
        </p>
      </form>
    </main>
  );
}
