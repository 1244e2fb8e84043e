/** Owns in how many media threads the services of a test carry sound: those that the environment says, so that every flow can be run with each number. */
export const soundThreads = (): Record<string, string> => {
  const count = process.env['MEDIA_THREADS']
  return count === undefined ? {} : { MEDIA_THREADS: count }
}
