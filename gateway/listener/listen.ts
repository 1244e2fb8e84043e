/** Owns the choice of the driver: node:http with ws, or uWebSockets.js where it is asked for. */
import type { Listener, ListenerOptions } from '../../model/listener.ts'
import { defaultLimits, type Limits } from './limits.ts'
import { listenOnNode } from './node-listener.ts'
import { listenOnUws, loadUws, type PresetVariable } from './uws-listener.ts'

export type ListenOptions = ListenerOptions &
  Partial<Limits> & {
    /** `uws` fails where the package or its binary is missing. */
    readonly driver?: 'uws' | 'node'
    /** uWebSockets.js has settings that it reads from there only. */
    readonly presetVariable: PresetVariable
  }

export async function listen(options: ListenOptions): Promise<Listener> {
  const limits = { ...defaultLimits, ...options }
  if (options.driver !== 'uws') return listenOnNode(options, limits)
  return listenOnUws(await loadUws(options.presetVariable), options, limits)
}
