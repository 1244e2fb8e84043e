/** Owns a clock whose waits last ten times as long: for deadlines of what is computed, where it is not the machine that is tested. */
import { systemClock } from '../../app/clock.ts'
import type { Clock } from '../../model/clock.ts'

export const patientClock: Clock = { now: systemClock.now, after: (ms, action) => systemClock.after(10 * ms, action) }
