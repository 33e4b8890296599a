// Entry that runs before the rest of the portal: it starts the requests that the address alone decides, while
// the browser still loads and compiles the other scripts. It imports nothing large, so that it runs at once.
import { startEarly } from './client/early_requests.ts';

startEarly(location);
