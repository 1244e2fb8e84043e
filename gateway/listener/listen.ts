/** Owns the choice of the driver: uWebSockets.js where its binary loads, node:http and ws everywhere else. */
import type { Listener, ListenerOptions } from '../../model/listener.ts'
import { defaultLimits, type Limits } from './limits.ts'
import { listenOnNode } from './node-listener.ts'
import { listenOnUws, loadUws, type PresetVariable } from './uws-listener.ts'

export type ListenOptions = ListenerOptions &
  Partial<Limits> & {
    /** `uws` fails where the binary does not load; `auto`, the default, falls back to node. */
    readonly driver?: 'uws' | 'node' | 'auto'
    /** uWebSockets.js has settings that it reads from there only. */
    readonly presetVariable: PresetVariable
  }

export async function listen(options: ListenOptions): Promise<Listener> {
  const { driver = 'auto' } = options
  const limits = { ...defaultLimits, ...options }
  if (driver === 'node') return listenOnNode(options, limits)
  const uws = await loadUws(options.presetVariable).catch((error: unknown) => {
    if (driver === 'uws') throw error
    return null
  })
  return uws ? listenOnUws(uws, options, limits) : listenOnNode(options, limits)
}
