// Notice to all workers that retention has deleted rows of traces. It has no body: a worker drops
// all complete traces that it holds in memory, and looks up in the store those that it needs next.

export const TRACES_DELETED_SUBJECT = 'retention.deleted';
