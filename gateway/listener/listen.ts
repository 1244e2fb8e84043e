/** Owns the choice of the driver: uWebSockets.js where its binary loads, node:http and ws everywhere else. */
import type { Listener, ListenerOptions } from '../../model/listener.ts'
import { listenOnNode } from './node-listener.ts'
import { listenOnUws, loadUws } from './uws-listener.ts'

export type ListenOptions = ListenerOptions & {
  /** `uws` fails where the binary does not load; `auto`, the default, falls back to node. */
  readonly driver?: 'uws' | 'node' | 'auto'
  /** A socket that was silent for so long is pinged, and closed when it stays silent as long again. */
  readonly pingInterval?: number
}

const defaultPingInterval = 30_000

export async function listen(options: ListenOptions): Promise<Listener> {
  const { driver = 'auto', pingInterval = defaultPingInterval } = options
  if (driver === 'node') return listenOnNode(options, pingInterval)
  const uws = await loadUws().catch((error: unknown) => {
    if (driver === 'uws') throw error
    return null
  })
  return uws ? listenOnUws(uws, options, pingInterval) : listenOnNode(options, pingInterval)
}
