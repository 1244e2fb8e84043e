/**
 * Owns the bus of a simulated world: the in-process bus as the server in the middle, and each process on a cable of its own, on which messages take
 * their time, keep their order, and are lost while the cable is.
 */
import { createLocalBus } from '../../actors/bus/local-bus.ts'
import { BusTimeout, type Bus, type BusMessage, type Subscription } from '../../model/bus.ts'
import { silentLog } from '../../model/log.ts'
import type { Random } from '../fake/random.ts'
import type { Loop, Process } from './loop.ts'

export type SimulatedBus = {
  busOf(process: Process): Bus
  /** Nothing comes or goes for so many ms. */
  cut(process: Process, ms: number): void
  /** Of so many messages of the process one is lost, for so many ms. */
  drop(process: Process, ms: number, oneOf: number): void
  /** The process has died: nobody listens there any more. */
  leave(process: Process): void
  /** Subscriptions that are left. */
  left(process: Process): number
  close(): Promise<void>
}

export function createSimulatedBus(loop: Loop, random: Random, weather: { delay(): number }): SimulatedBus {
  const server = loop.openProcess('bus')
  const middle = createLocalBus({ log: silentLog, clock: server.clock })
  const cables = new Map<Process, Set<Subscription>>()
  const cutUntil = new Map<Process, number>()
  const dropping = new Map<Process, { readonly until: number; readonly oneOf: number }>()

  const isLost = (process: Process): boolean => {
    if ((cutUntil.get(process) ?? 0) > loop.now()) return true
    const drops = dropping.get(process)
    return drops !== undefined && drops.until > loop.now() && random.below(drops.oneOf) === 0
  }
  const out = (process: Process, label: string, act: () => void): void => {
    if (isLost(process)) return loop.note(`bus loses < ${process.name} ${label}`)
    loop.happen(server, `bus < ${process.name}`, weather.delay(), `bus < ${process.name} ${label}`, act)
  }
  const back = (process: Process, label: string, act: () => void): void => {
    if (isLost(process)) return loop.note(`bus loses > ${process.name} ${label}`)
    loop.happen(process, `bus > ${process.name}`, weather.delay(), `bus > ${process.name} ${label}`, act)
  }

  const busOf = (process: Process): Bus => {
    const subscriptions = new Set<Subscription>()
    cables.set(process, subscriptions)
    const heardBy =
      (handler: (message: BusMessage) => void, isOpen: () => boolean) =>
      (message: BusMessage): void =>
        back(process, message.subject, () => {
          if (!isOpen()) return
          handler({
            ...message,
            respond: (payload) => {
              const own = new Uint8Array(payload)
              out(process, `answer ${message.subject}`, () => message.respond(own))
            },
          })
        })
    return {
      publish(subject, payload) {
        const own = new Uint8Array(payload)
        out(process, subject, () => middle.publish(subject, own, true))
      },
      subscribe(pattern, handler, options) {
        let isOpen = true
        const inner = middle.subscribe(
          pattern,
          heardBy(handler, () => isOpen),
          options,
        )
        const subscription = {
          close() {
            isOpen = false
            subscriptions.delete(subscription)
            inner.close()
          },
        }
        subscriptions.add(subscription)
        return subscription
      },
      request(subject, payload, { timeout }) {
        const { promise, resolve, reject } = Promise.withResolvers<Uint8Array>()
        const own = new Uint8Array(payload)
        const cancel = process.clock.after(timeout, () => reject(new BusTimeout(`no answer on ${subject}`)))
        const answered = (act: () => void) => () => {
          cancel()
          act()
        }
        out(process, `ask ${subject}`, () => {
          middle.request(subject, own, { timeout: timeout + 1_000 }).then(
            (found) =>
              back(
                process,
                `answered ${subject}`,
                answered(() => resolve(found)),
              ),
            (error: Error) =>
              back(
                process,
                `${error.name} ${subject}`,
                answered(() => reject(error)),
              ),
          )
        })
        return promise
      },
      // While the cable is cut it waits for the cable, as a client that connects anew does.
      flush: () =>
        new Promise((resolve) => {
          const wait = Math.max(0, (cutUntil.get(process) ?? 0) - loop.now())
          const there = wait + weather.delay()
          loop.happen(
            process,
            `bus > ${process.name}`,
            there + weather.delay(),
            `bus > ${process.name} flushed`,
            resolve,
          )
        }),
      close: () => Promise.resolve(),
    }
  }
  const leave = (process: Process): void => {
    for (const subscription of cables.get(process) ?? []) subscription.close()
  }
  return {
    busOf,
    cut: (process, ms) => void cutUntil.set(process, loop.now() + ms),
    drop: (process, ms, oneOf) => void dropping.set(process, { until: loop.now() + ms, oneOf }),
    leave,
    left: (process) => cables.get(process)?.size ?? 0,
    close: () => middle.close(),
  }
}
