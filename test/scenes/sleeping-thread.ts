/** Owns a thread that does nothing but to sleep from slot to slot, with a socket, a timer and messages, as a media thread has them. */
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { isMainThread, parentPort, Worker } from 'node:worker_threads'
import { createSlotSleep } from '../../media/ticker/slot-sleep.ts'
import { createTicker } from '../../media/ticker/ticker.ts'

type Told = { readonly port: number; readonly datagrams: number; readonly timers: number; readonly sleptMs: number }

export type SleepingThread = {
  /** Of its socket. */
  readonly port: number
  /** Resolves when so many datagrams have come. One at a time. */
  heard(datagrams: number): Promise<Told>
  /** Idempotent. */
  close(): Promise<void>
}

export async function openSleepingThread(): Promise<SleepingThread> {
  const worker = new Worker(import.meta.filename, { name: 'sleeping' })
  const next = async (): Promise<Told> => ((await once(worker, 'message')) as [Told])[0]
  const { port } = await next()
  return {
    port,
    heard(datagrams) {
      const told = next()
      worker.postMessage(datagrams)
      return told
    },
    close: async () => void (await worker.terminate()),
  }
}

if (!isMainThread && parentPort) sleepAndHear(parentPort)

function sleepAndHear(owner: NonNullable<typeof parentPort>): void {
  let [datagrams, timers, sleptMs] = [0, 0, 0]
  let wanted = Infinity
  const after = (ms: number, action: () => void) => {
    const timer = setTimeout(action, ms)
    return () => clearTimeout(timer)
  }
  const now = (): number => performance.now()
  const sleep = createSlotSleep({ now, later: after, slept: (ms) => void (sleptMs += ms) })
  const tell = (): void => owner.postMessage({ port: socket.address().port, datagrams, timers, sleptMs } satisfies Told)
  const tellIfWanted = (): void => {
    if (datagrams < wanted || timers === 0) return
    wanted = Infinity
    tell()
  }
  const socket = createSocket('udp4', () => {
    datagrams++
    tellIfWanted()
  })
  owner.on('message', (count: number) => {
    wanted = count
    tellIfWanted()
  })
  setInterval(() => {
    timers++
    tellIfWanted()
  }, 10)
  createTicker({ now, after: sleep.after }).join(() => undefined)
  socket.bind(0, '127.0.0.1', tell)
}
