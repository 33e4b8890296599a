// Ends the session on request of the person.
import { send } from '../client/api.ts';
import { queryClient } from '../client/query_client.ts';
import { toast } from '../ui/toast.tsx';

/** Logs out and leaves for the login page; nothing that was read stays in the page. */
export function endSession(): void {
  send(null, 'delete', '/v1/session', { throw401: true }).then(
    () => {
      queryClient.clear();
      sessionStorage.clear();
      location.assign('/login');
    },
    (error: unknown) => {
      toast({ tone: 'error', text: `Logging out failed: ${error instanceof Error ? error.message : String(error)}` });
    },
  );
}
