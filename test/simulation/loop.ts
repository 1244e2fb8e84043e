/**
 * Owns the order of everything in a simulated world: which of the things that may happen next does happen, and what time it is then. What a process of
 * that world asks of the event loop (immediates, timers, the time) it asks of this loop: while its code runs, the globals of this program are the loop's;
 * while a real database is waited for, they are the real ones again. The same random numbers give the same order.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { createHash } from 'node:crypto'
import type { Cancel, Clock } from '../../model/clock.ts'
import type { Random } from '../fake/random.ts'

/** A process of the world. */
export type Process = {
  readonly name: string
  readonly clock: Clock
  /** Nothing of it happens any more, ever. */
  readonly isDead: boolean
  /** What has happened in it. */
  readonly steps: number
  kill(): void
  /** It stands still for so many ms, as one that its machine gives no time; the world goes on. */
  freeze(ms: number): void
  /** Its clock goes so many ms ahead at once; its timers do not notice. */
  leap(ms: number): void
  /** Timers and immediates that wait. */
  pending(): number
}

/** Something that happens at a time or later; those of one lane happen in their order. */
type Happening = {
  readonly at: number
  readonly lane: Lane
  readonly label: string
  readonly process: Process | null
  readonly act: () => unknown
  isGone: boolean
}
type Lane = { readonly name: string; readonly queue: Happening[] }

export type Loop = {
  /** Ms of the world since it began. */
  now(): number
  openProcess(name: string): Process
  /** `process`: its code runs in `act`. Null: what lies between processes, and is awaited. */
  happen(process: Process | null, lane: string, ms: number, label: string, act: () => unknown): Cancel
  /** Asks for the process whose code runs. */
  current(): Process
  /** Until `isOver`, nothing is left, or the world is so old (ms). Returns why. */
  run(until: { isOver(): boolean; age: number }): Promise<'over' | 'quiet' | 'late'>
  /** Told before each happening in a process. */
  watch(step: (process: Process) => void): void
  /** Takes notes of what happens: the same seed, the same notes. */
  note(line: string): void
  /** Of all notes. */
  hash(): string
  readonly steps: number
  /** Gives the globals back. */
  close(): void
}

export const beginning = 1_750_000_000_000
const maxNotes = 200_000

export function createLoop(random: Random, notes: string[] | null = null): Loop {
  const lanes = new Map<string, Lane>()
  const running = new AsyncLocalStorage<Process>()
  const hash = createHash('sha256')
  let now = 0
  let steps = 0
  let watcher: (process: Process) => void = () => undefined
  const frozen = new Map<Process, number>()
  const globals = takeGlobals()

  const laneOf = (name: string): Lane => {
    const known = lanes.get(name)
    if (known) return known
    const lane = { name, queue: [] }
    lanes.set(name, lane)
    return lane
  }
  const note = (line: string): void => {
    const told = `${now.toFixed(1)} ${line}`
    hash.update(told)
    if (notes && notes.length < maxNotes) notes.push(told)
  }
  /** In a lane of timers what is due first goes first; in all others what came first. */
  const happen: Loop['happen'] = (process, name, ms, label, act) => {
    if (process?.isDead) return () => undefined
    const lane = laneOf(name)
    const { queue } = lane
    const isOfTimers = name.endsWith(' timers')
    const last = queue.at(-1)
    const at = isOfTimers || !last ? now + ms : Math.max(now + ms, last.at)
    const happening: Happening = { at, lane, label, process, act, isGone: false }
    const place = isOfTimers ? queue.findIndex((other) => other.at > at) : -1
    if (place === -1) queue.push(happening)
    else queue.splice(place, 0, happening)
    return () => {
      if (happening.isGone) return
      happening.isGone = true
      const index = queue.indexOf(happening)
      if (index >= 0) queue.splice(index, 1)
    }
  }
  const mayBegin = (happening: Happening): number =>
    Math.max(happening.at, happening.process ? (frozen.get(happening.process) ?? 0) : 0)
  /** Null: nothing is left. */
  const next = (): Happening | null => {
    let earliest = Infinity
    const ready: Happening[] = []
    for (const [name, { queue }] of lanes) {
      const [head] = queue
      if (!head) {
        lanes.delete(name)
        continue
      }
      const at = mayBegin(head)
      if (at <= now) ready.push(head)
      earliest = Math.min(earliest, at)
    }
    if (earliest === Infinity) return null
    if (ready.length === 0) {
      now = earliest
      return next()
    }
    const chosen = ready.length === 1 ? ready[0]! : ready[random.below(ready.length)]!
    chosen.lane.queue.shift()
    chosen.isGone = true
    return chosen
  }
  const one = async ({ process, label, act }: Happening): Promise<void> => {
    if (process?.isDead) return
    steps++
    note(label)
    if (!process) return void (await act())
    watcher(process)
    if (process.isDead) return
    const own = process as OwnProcess
    own.steps++
    globals.lend()
    try {
      running.run(process, act as () => void)
      await globals.turnIsOver()
    } finally {
      globals.giveBack()
    }
  }

  type OwnProcess = { -readonly [Key in keyof Process]: Process[Key] }
  const openProcess = (name: string): Process => {
    let ahead = 0
    const after = (ms: number, action: () => void): Cancel =>
      happen(process, `${name} timers`, Math.max(0, ms), `${name} timer`, action)
    const process: OwnProcess = {
      name,
      clock: { now: () => Math.trunc(beginning + now + ahead), after },
      isDead: false,
      steps: 0,
      kill() {
        process.isDead = true
        for (const { queue } of lanes.values())
          for (const happening of queue.filter((one) => one.process === process)) {
            happening.isGone = true
            queue.splice(queue.indexOf(happening), 1)
          }
      },
      freeze: (ms) => void frozen.set(process, now + ms),
      leap: (ms) => void (ahead += ms),
      pending: () =>
        ['timers', 'turn'].reduce((count, kind) => count + (lanes.get(`${name} ${kind}`)?.queue.length ?? 0), 0),
    }
    return process
  }
  const current = (): Process => {
    const process = running.getStore()
    if (!process) throw new Error('code runs that belongs to no process of the world')
    return process
  }

  globals.set({
    now: () => now,
    time: () => running.getStore()?.clock.now() ?? beginning + now,
    after: (ms, action) => current().clock.after(ms, action),
    soon(action) {
      const process = current()
      return happen(process, `${process.name} turn`, 0, `${process.name} turn`, action)
    },
  })

  return {
    now: () => now,
    openProcess,
    happen,
    current,
    async run({ isOver, age }) {
      for (;;) {
        if (isOver()) return 'over'
        const happening = next()
        if (!happening) return 'quiet'
        if (now > age) return 'late'
        await one(happening)
      }
    },
    watch: (step) => void (watcher = step),
    note,
    hash: () => hash.copy().digest('hex').slice(0, 16),
    get steps() {
      return steps
    },
    close: () => globals.close(),
  }
}

type Asked = {
  now(): number
  time(): number
  after(ms: number, action: () => void): Cancel
  soon(action: () => void): Cancel
}

/** What stands for a timer or an immediate of the world. */
class Handle {
  readonly cancel: Cancel
  constructor(cancel: Cancel) {
    this.cancel = cancel
  }
  ref = (): this => this
  unref = (): this => this
  hasRef = (): boolean => true
}

function takeGlobals() {
  const real = {
    setTimeout: globalThis.setTimeout,
    clearTimeout: globalThis.clearTimeout,
    setInterval: globalThis.setInterval,
    setImmediate: globalThis.setImmediate,
    clearImmediate: globalThis.clearImmediate,
    performance: globalThis.performance,
    now: Date.now,
  }
  let asked: Asked | null = null
  const lent = {
    setTimeout: (action: (...given: unknown[]) => void, ms = 0, ...given: unknown[]) =>
      new Handle(asked!.after(ms, () => action(...given))),
    clearTimeout: (handle: unknown) =>
      handle instanceof Handle ? handle.cancel() : real.clearTimeout(handle as NodeJS.Timeout),
    setInterval: () => {
      throw new Error('nothing of the world has intervals')
    },
    setImmediate: (action: (...given: unknown[]) => void, ...given: unknown[]) =>
      new Handle(asked!.soon(() => action(...given))),
    clearImmediate: (handle: unknown) => (handle as Handle | null)?.cancel(),
  }
  const performance = { now: () => asked!.now() }
  const put = (functions: object, clock: unknown, now: () => number): void => {
    Object.assign(globalThis, functions)
    Object.defineProperty(globalThis, 'performance', { value: clock, configurable: true, writable: true })
    Date.now = now
  }
  const { performance: realClock, now, ...realFunctions } = real
  const giveBack = (): void => put(realFunctions, realClock, now)
  return {
    set: (of: Asked) => void (asked = of),
    lend: () => put(lent, performance, () => asked!.time()),
    giveBack,
    /** All that follows at once from what has happened has been done. */
    turnIsOver: () => new Promise<void>((resolve) => void real.setImmediate(resolve)),
    close: giveBack,
  }
}
