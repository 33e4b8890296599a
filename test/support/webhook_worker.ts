// A sending worker as a process of its own, for tests that kill it.
import { startTestWebhooks } from './webhooks.ts';

process.on('disconnect', () => process.exit(0));
await startTestWebhooks(process.env['TEST_NATS_URL'] ?? '');
process.send?.('ready');
