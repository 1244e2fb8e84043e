/** Owns the bare echo as the other end of the calls of a bench: the floor under each row. */
import { forkProcess } from './forked-process.ts'
import type { OtherEnd } from './phone-row.ts'

export async function openBareEcho(closing: AsyncDisposableStack): Promise<OtherEnd> {
  const child = await forkProcess<unknown>('process-echoing-rtp.ts', [])
  closing.defer(() => child.close())
  let ports: number[] = []
  return {
    prepare: async (count) => void ({ ports } = await child.ask<{ ports: number[] }>(`open ${count}`)),
    async connect(phone) {
      const port = ports.pop()
      if (port === undefined) throw new Error('the echo has no port left')
      phone.begin({ address: '127.0.0.1', port })
      return () => Promise.resolve()
    },
    read: () => child.ask<{ cpuMs: number }>('read'),
    settled: () => Promise.resolve(),
  }
}
