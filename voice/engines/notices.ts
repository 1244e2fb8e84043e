/** Owns notices of an engine for its operator: what a provider has not got is told once, not with every call. */
import type { Log } from '../../model/log.ts'

export type Notices = (message: string) => void

/** Notices may name what a worker asks for. */
const maxTold = 256

export function createNotices(log: Log): Notices {
  const told = new Set<string>()
  return (message) => {
    if (told.has(message) || told.size >= maxTold) return
    told.add(message)
    log.warn(message)
  }
}
