// Schedules of jobs in words. Pure.

/** Returns a schedule of five fields in words; the schedule itself where it is none of the usual ones. */
export function scheduleWords(schedule: string): string {
  const [minute = '', hour = '', ...rest] = schedule.split(' ');
  if (rest.join(' ') !== '* * *') return schedule;
  if (hour === '*') {
    if (minute === '*') return 'every minute';
    const step = /^\*\/(\d+)$/.exec(minute)?.[1];
    if (step !== undefined) return `every ${step} minutes`;
    return /^\d+$/.test(minute) ? `every hour at :${minute.padStart(2, '0')}` : schedule;
  }
  if (!/^\d+$/.test(hour) || !/^\d+$/.test(minute)) return schedule;
  return `every day at ${hour.padStart(2, '0')}:${minute.padStart(2, '0')} UTC`;
}
