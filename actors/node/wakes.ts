/**
 * Owns how those who act by themselves learn that something waits for them which another process has committed. Nothing is lost with a word that is:
 * they look by themselves once a second.
 */
import type { Bus, Subscription } from '../../model/bus.ts'
import { fromBytes, toBytes } from '../../model/bus-json.ts'

export type Work = 'deliveries' | 'dispatcher' | 'scheduler' | 'processing'

const subject = 'work.waits'
/** One of those that do such work looks; it is the same work for all. */
const queue = 'actors'

export const tellWaits = (bus: Bus, work: Work): void => bus.publish(subject, toBytes({ work }))

export const listenForWork = (bus: Bus, wake: Readonly<Record<Work, () => void>>): Subscription =>
  bus.subscribe(
    subject,
    ({ payload }) => {
      const work = (fromBytes(payload) as { readonly work?: unknown } | null)?.work
      if (typeof work === 'string' && Object.hasOwn(wake, work)) wake[work as Work]()
    },
    { queue },
  )
