// Text form of times for DateTime64(3) columns.

/**
 * Returns YYYY-MM-DD hh:mm:ss.SSS in UTC.
 * @param ms milliseconds since the epoch
 */
export const storeTime = (ms: number): string => new Date(ms).toISOString().replace('T', ' ').replace('Z', '');
