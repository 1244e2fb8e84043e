/** Owns how a read that a caller waits for is tried again: a lost connection fails a query or two, and one more is quick enough. */
import type { Clock } from '../model/clock.ts'
import { waitsOf, type Retrying } from '../model/retry.ts'
import { databaseUnreachable } from './database-unreachable.ts'

const delays = [20, 100, 500, 2_000]

export const quickReads = (clock: Pick<Clock, 'after'>): Retrying => ({
  clock,
  wait: waitsOf(delays, databaseUnreachable),
})
