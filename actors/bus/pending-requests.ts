/** Owns the requests of the in-process bus that wait for an answer: each ends exactly once, by an answer, its timeout or the closing of the bus. */
import { BusNoResponders, BusTimeout } from '../../model/bus.ts'
import type { Clock, Cancel } from '../../model/clock.ts'

export type PendingRequest = {
  readonly answer: Promise<Uint8Array>
  /** False once it has ended: a late or a second answer goes nowhere. */
  isOpen(): boolean
  settle(answer: Uint8Array): void
}

export function createPendingRequests(clock: Clock) {
  const failures = new Set<(error: Error) => void>()

  function open(subject: string, timeout: number): PendingRequest {
    const { promise, resolve, reject } = Promise.withResolvers<Uint8Array>()
    const fail = (error: Error): void => {
      forget()
      reject(error)
    }
    const cancel: Cancel = clock.after(timeout, () =>
      fail(new BusTimeout(`no answer on ${subject} within ${timeout} ms`)),
    )
    const forget = (): void => {
      cancel()
      failures.delete(fail)
    }
    failures.add(fail)
    const settle = (answer: Uint8Array): void => {
      forget()
      resolve(answer)
    }
    return { answer: promise, isOpen: () => failures.has(fail), settle }
  }

  function close(): void {
    for (const fail of failures) fail(new BusNoResponders('the bus was closed'))
  }

  return { open, close }
}
