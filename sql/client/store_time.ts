// Times as DateTime64(3) columns read them.

/** YYYY-MM-DD hh:mm:ss.SSS in UTC. @param ms since the epoch */
export const storeTime = (ms: number): string => new Date(ms).toISOString().replace('T', ' ').replace('Z', '');
