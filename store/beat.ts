/**
 * Owns when work that is gathered for a moment begins: at beats that all who gather for as long share. What they commit then waits for the disk at the
 * same time, and Postgres flushes its log once for all of it.
 */

/** The next beat behind that time of `performance.now()`. `every`: ms; 0: there are none to wait for. */
export const beatBehind = (time: number, every: number): number =>
  every === 0 ? time : (Math.floor(time / every) + 1) * every
