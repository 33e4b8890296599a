// The colour of a budget's status in words.
import styles from './costs.module.css';
import type { ResourceBudget } from './budget_api.ts';

/** Returns the class of a status; undefined for one that is fine. */
export const toneOf = (status: ResourceBudget['status']): string | undefined =>
  ({ ok: undefined, soft_exceeded: styles.soft, hard_exceeded: styles.bad })[status];
