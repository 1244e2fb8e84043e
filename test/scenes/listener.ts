/** Owns a real listener on loopback for tests of what every driver keeps, and the loop over those that load here. */
import { once } from 'node:events'
import net from 'node:net'
import { test, type Test } from 'tap'
import { systemClock } from '../../app/clock.ts'
import { presetVariable } from '../../app/config.ts'
import { listen, type ListenOptions } from '../../gateway/listener/listen.ts'
import { loadUws } from '../../gateway/listener/uws-listener.ts'
import type { Fetch, Listener } from '../../model/listener.ts'

export type Driver = 'node' | 'uws'
type Served = Pick<Listener, 'port'> & {
  readonly close: (graceMs: number) => Promise<void>
  readonly url: string
  readonly socketUrl: string
}

export const maxBodyBytes = 64 * 1024
export const json = (value: unknown, status = 200): Response => Response.json(value, { status })
export const notFound: Fetch = async (request) => json({ type: 'NOT_FOUND', path: new URL(request.url).pathname }, 404)

export async function serve(t: Test, driver: Driver, options: Partial<ListenOptions>): Promise<Served> {
  const listener = await listen({
    host: '127.0.0.1',
    port: 0,
    tls: null,
    maxBodyBytes,
    requestTimeout: 20_000,
    clock: systemClock,
    fetch: notFound,
    tooLarge: () => json({ type: 'PAYLOAD_TOO_LARGE' }, 413),
    sockets: {},
    driver,
    presetVariable,
    ...options,
  })
  t.teardown(() => listener.close(0))
  t.equal(listener.driver, driver)
  const address = `127.0.0.1:${listener.port}`
  const close = (graceMs: number): Promise<void> => listener.close(graceMs)
  return { port: listener.port, close, url: `http://${address}`, socketUrl: `ws://${address}` }
}

/** A fetch whose connection ends with it, so that nothing of one test is left in the next. */
export const get = (url: string, init: Omit<RequestInit, 'headers'> = {}, headers: Record<string, string> = {}) =>
  fetch(url, { ...init, headers: { connection: 'close', ...headers } })

/** Everything the server says until it closes the connection. */
export async function raw(port: number, text: string, from = '127.0.0.1'): Promise<string> {
  const socket = net.connect({ port, host: '127.0.0.1', localAddress: from }).on('error', () => undefined)
  socket.write(text)
  let answer = ''
  socket.on('data', (chunk) => (answer += chunk.toString('latin1')))
  await once(socket, 'close')
  return answer
}

export const loads = (name: Driver): Promise<boolean> =>
  name === 'node' ? Promise.resolve(true) : loadUws(presetVariable).then(Boolean, () => false)

export type Rules = Readonly<Record<string, (t: Test, driver: Driver) => Promise<void>>>

/** With LISTENER_DRIVER set only that driver is proved, and it must load. */
export async function eachDriver(rules: Rules): Promise<void> {
  const wanted = process.env['LISTENER_DRIVER']
  for (const driver of ['node', 'uws'] as const) {
    if (wanted !== undefined && wanted !== driver) continue
    if (wanted === undefined && !(await loads(driver))) continue
    void test(`the ${driver} driver`, async (t) => {
      for (const [name, rule] of Object.entries(rules)) await t.test(name, (t) => rule(t, driver))
    })
  }
}
