/** Owns that the other processes of the service hear of this one. One that shares no bus beats for nobody. */
import { createNodeBeats, type NodeBeats } from '../actors/node/node-beats.ts'
import type { Config } from './config.ts'
import type { Core } from './core.ts'
import { now } from './clock.ts'

/** Null: there are no others. */
export function openNodeBeats(
  { bus, clock, nodeId, log }: Pick<Core, 'bus' | 'clock' | 'nodeId' | 'log'>,
  { natsUrl }: Pick<Config, 'natsUrl'>,
  closing: AsyncDisposableStack,
): NodeBeats | null {
  if (natsUrl === null) return null
  const beats = createNodeBeats({ bus, clock, now, nodeId, log, quietFor: bus.quietFor })
  closing.defer(() => beats.close())
  return beats
}
