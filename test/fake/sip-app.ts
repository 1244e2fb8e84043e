/** Owns an app on the control protocol of the SIP server: unmodified drachtio-srf, with promises where a test waits. */
import Srf from 'drachtio-srf'
import type { SipServer } from '../../sip/server/sip-server.ts'

/** The types of the library leave out much of what it does. */
// oxlint-disable-next-line typescript/no-explicit-any
export type Loose = any

export type SipApp = {
  readonly srf: Loose
  /** The next request of this method that the library hands out, from when the app was opened. */
  next(method: string): Promise<{ readonly req: Loose; readonly res: Loose }>
  close(): Promise<void>
}

/** Resolves when the routes have been asked for. Requests of methods in `routes` wait for `next`. */
export async function openSipApp(
  control: SipServer['control'],
  routes: readonly string[] = ['invite', 'options', 'register', 'message'],
): Promise<SipApp> {
  const srf: Loose = new Srf()
  const arrived = new Map<string, Loose[]>()
  const waiting = new Map<string, ((one: Loose) => void)[]>()
  for (const method of routes)
    srf[method]((req: Loose, res: Loose) => {
      const taker = waiting.get(method)?.shift()
      if (taker) taker({ req, res })
      else arrived.set(method, [...(arrived.get(method) ?? []), { req, res }])
    })
  srf.on('error', () => undefined)
  const connected = new Promise<void>((resolve, reject) => {
    srf.on('connect', (error: unknown) => (error ? reject(error) : resolve()))
  })
  // One reconnection would keep the test alive.
  srf.connect({ ...control, reconnect: { maxAttempts: 1 } })
  await connected
  await routed(srf)
  return {
    srf,
    next(method) {
      const one = arrived.get(method)?.shift()
      if (one) return Promise.resolve(one)
      return new Promise((resolve) => waiting.set(method, [...(waiting.get(method) ?? []), resolve]))
    },
    async close() {
      const socket = socketOf(srf)
      if (!socket || socket.destroyed) return
      const closed = new Promise((resolve) => socket.once('close', resolve))
      srf.disconnect()
      await closed
    },
  }
}

export const socketOf = (srf: Loose): Loose => srf._app.client.mapServer.keys().next().value

/** The library tells nobody when its routes are there: a command behind them is answered behind them. */
const routed = (srf: Loose): Promise<void> =>
  new Promise((resolve) => {
    const { wp, mapServer } = srf._app.client
    const socket = socketOf(srf)
    mapServer.get(socket).pendingRequests.set(wp.send(socket, 'ping'), () => resolve())
  })
