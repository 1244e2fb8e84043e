/** Owns the line to a provider on loopback: a relay for TCP whose connections are counted and can be cut, and that may lead nowhere. */
import { createConnection, createServer, type AddressInfo, type Socket } from 'node:net'

export type ProviderLine = {
  /** An address of the provider, by this line. */
  through(url: string): string
  /** Connections at this moment. */
  open(): number
  /** Connections so far. */
  count(): number
  /** Resolves when there is no connection. */
  idle(): Promise<void>
  /** The next connection that is not told yet; waits for one. */
  next(): Promise<void>
  /** As a network that fails: no close frame, no answer. */
  cut(): void
  /** What connections meet from now on: the provider; nobody; an HTTP status to whatever they ask; or silence. */
  answers(how: 'provider' | 'nobody' | 'silence' | number): Promise<void>
}

export async function openProviderLine(
  t: { teardown(close: () => Promise<void>): unknown },
  target: string,
): Promise<ProviderLine> {
  const port = Number(new URL(target).port)
  const pairs = new Set<Socket>()
  const looking = new Set<() => void>()
  let count = 0
  let told = 0
  let answers: 'provider' | 'silence' | number = 'provider'

  const look = (): void => looking.forEach((each) => each())
  const until = (met: () => boolean): Promise<void> =>
    new Promise((resolve) => {
      const each = (): void => {
        if (!looking.has(each) || !met()) return
        looking.delete(each)
        resolve()
      }
      looking.add(each)
      each()
    })
  const server = createServer((near) => {
    count++
    pairs.add(near)
    const far = answers === 'provider' ? createConnection(port, '127.0.0.1') : null
    if (far) near.pipe(far).pipe(near)
    far?.on('error', () => near.destroy())
    far?.on('close', () => near.destroy())
    if (typeof answers === 'number') near.once('data', () => near.end(refusalOf(Number(answers))))
    near.on('error', () => near.destroy())
    near.on('close', () => {
      far?.destroy()
      pairs.delete(near)
      look()
    })
    look()
  })
  const cut = (): void => pairs.forEach((near) => near.resetAndDestroy())
  const hangUp = (): Promise<void> => new Promise((resolve) => void server.close(() => resolve()))
  const listen = (on: number): Promise<void> => new Promise((resolve) => void server.listen(on, '127.0.0.1', resolve))
  await listen(0)
  const { port: own } = server.address() as AddressInfo
  t.teardown(async () => {
    cut()
    if (server.listening) await hangUp()
  })
  return {
    through: (url) => Object.assign(new URL(url), { port: String(own) }).href.replace(/\/$/, ''),
    open: () => pairs.size,
    count: () => count,
    idle: () => until(() => pairs.size === 0),
    async next() {
      await until(() => count > told)
      told++
    },
    cut,
    async answers(how) {
      if (how === 'nobody') {
        const closed = hangUp()
        cut()
        return closed
      }
      answers = how
      if (!server.listening) await listen(own)
    },
  }
}

const refusalOf = (status: number): string => `HTTP/1.1 ${status} No\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`
