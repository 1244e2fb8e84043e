/**
 * Owns the database of a simulated world: a real Postgres whose statements are carried out one at a time, when the loop says so. Transactions of
 * several processes so go on between each other, statement by statement, in an order that a seed gives; one that waits for a lock is found waiting, and
 * goes on when it got it. What is answered reaches its process later, or never. The clock that leases are measured by is the world's.
 */
import type { Sql, Transaction } from '../../store/sql.ts'
import type { Random } from '../fake/random.ts'
import { beginning, type Loop, type Process } from './loop.ts'

/** What of a query is the driver's own (postgres 3.4.9). */
type Query = Promise<unknown> & {
  readonly strings: readonly string[]
  readonly args: readonly unknown[]
  executed: boolean
  handler(query: Query): void
  resolve(value: unknown): void
  reject(error: unknown): void
}

type Session = { readonly sql: Sql; readonly pid: number; execute(query: Query): void }
type Answer = { readonly value: unknown } | { readonly error: unknown }

/** One statement on its way, or one that waits for a lock. */
type Statement = {
  readonly query: Query
  readonly label: string
  readonly session: Session
  answer: Answer | null
  /** Made when it was canceled, in place of what Postgres says of that. */
  canceledAs: string | null
  settled(answer: Answer): void
}

/** What a process has asked for and has no answer to. */
type Asked = {
  readonly process: Process
  /** Its process has been told of its end. */
  isOver: boolean
  /** Reached the server, and cannot be held back any more. */
  isSent: boolean
  /** Ends its transaction without a commit. */
  drop: (() => Promise<void>) | null
  cancelDeadline(): void
  lose(error: Error): void
}

export type Weather = {
  /** Ms on the way to the database or back. */
  delay(): number
}

export type SimulatedDatabase = {
  sqlOf(process: Process): Sql
  /** All connections of the process end now. What was on its way may have arrived. */
  cut(process: Process): Promise<void>
  /** Nobody answers the process for so many ms; its connections end. */
  away(process: Process, ms: number): Promise<void>
  /** Answers of transactions that are committed from now on within `ms` are lost, with the connection. */
  loseCommits(process: Process, ms: number): void
  leap(ms: number): void
  /** Nothing is under way. */
  isIdle(): boolean
  close(): Promise<void>
}

const limit = 5_000
/** Real ms without an answer, after which it is asked whether a statement waits for a lock. */
const patience = 4

/** Sessions of one server that worlds use one after the other. */
export type Sessions = { readonly base: Sql; readonly monitor: Sql; take(): Session; give(session: Session): void }

/** The transaction has failed already. */
const goOnWithout = (): void => undefined

const withCode = (message: string, code: string): Error => Object.assign(new Error(message), { code })

export async function openSessions(base: Sql, monitor: Sql, count: number): Promise<Sessions> {
  const free: Session[] = []
  for (let opened = 0; opened < count; opened++) {
    const sql = await base.reserve()
    await sql`set search_path = sim, pg_catalog, public`
    await sql`set deadlock_timeout = '10min'`
    await sql`set idle_in_transaction_session_timeout = 0`
    await sql`set statement_timeout = 0`
    await sql`set plan_cache_mode = force_generic_plan`
    const [row] = await sql<{ pid: number }[]>`select pg_backend_pid() as pid`
    const pattern = sql`select` as unknown as Query
    const { handler } = pattern
    free.push({ sql, pid: row!.pid, execute: (query) => handler(query) })
  }
  return {
    base,
    monitor,
    take() {
      const session = free.pop()
      if (!session) throw new Error('the world asks for more connections than it has')
      return session
    },
    give: (session) => void free.push(session),
  }
}

const texts = new WeakMap<object, string>()
/** Without its values, fragments included. */
function textOf(query: Query): string {
  const own = query.args.some(isQuery) ? undefined : texts.get(query.strings)
  if (own !== undefined) return own
  const text = query.strings
    .map((part, index) => {
      const arg = query.args[index]
      return part + (isQuery(arg) ? textOf(arg) : index < query.args.length ? '?' : '')
    })
    .join('')
  if (!query.args.some(isQuery)) texts.set(query.strings, text)
  return text
}
/** Rows that come in no order are given one: that of the disk is another one each time. */
const inOrder = (value: unknown): unknown => {
  if (!Array.isArray(value) || value.length < 2) return value
  const keys = new Map(value.map((row: object) => [row, JSON.stringify(row)]))
  return value.sort((one: object, other: object) => (keys.get(one)! < keys.get(other)! ? -1 : 1))
}
const isQuery = (made: unknown): made is Query => made instanceof Promise
const labelOf = (text: string): string => text.replace(/\s+/g, ' ').trim().slice(0, 60)

export function createSimulatedDatabase(
  loop: Loop,
  { base, monitor, take, give }: Sessions,
  random: Random,
  weather: Weather,
): SimulatedDatabase {
  let ahead = 0
  let asked = 0
  const underWay = new Set<Asked>()
  const blocked: Statement[] = []
  const awayUntil = new Map<Process, number>()
  const losesUntil = new Map<Process, number>()

  /** At once: the driver would wait for a microtask, and what is sent after it would be before it. */
  const send = (session: Session, made: unknown): Promise<unknown> => {
    const query = made as Query
    query.executed = true
    session.execute(query)
    return query
  }
  const setClock = (session: Session): Promise<unknown> => {
    const now = new Date(Math.trunc(beginning + loop.now() + ahead)).toISOString()
    return send(session, session.sql`select set_config('sim.now', ${now}, false)`)
  }
  const setWriter = (session: Session, name: string): Promise<unknown> =>
    send(session, session.sql`select set_config('sim.writer', ${name}, false)`)

  const blockersOf = async (pid: number): Promise<readonly number[]> => {
    const [row] = await monitor<{ pids: number[] }[]>`select pg_blocking_pids(${pid}) as pids`
    return row?.pids ?? []
  }
  const waitFor = (statement: Statement, ms: number): Promise<void> => {
    if (statement.answer) return Promise.resolve()
    const { promise, resolve } = Promise.withResolvers<void>()
    const timer = setTimeout(resolve, ms)
    const { settled } = statement
    statement.settled = (answer) => {
      clearTimeout(timer)
      statement.settled = settled
      settled(answer)
      resolve()
    }
    return promise
  }
  /** Until it is answered, or known to wait for somebody. */
  const settle = async (statement: Statement): Promise<void> => {
    for (;;) {
      await waitFor(statement, patience)
      if (statement.answer) return
      if ((await blockersOf(statement.session.pid)).length > 0) return
    }
  }
  const isDeadlocked = async (statement: Statement): Promise<boolean> => {
    const seen = new Set<number>()
    const look = async (pid: number): Promise<boolean> => {
      for (const blocker of await blockersOf(pid)) {
        if (blocker === statement.session.pid) return true
        if (seen.has(blocker)) continue
        seen.add(blocker)
        if (await look(blocker)) return true
      }
      return false
    }
    return look(statement.session.pid)
  }
  const cancel = async (statement: Statement, as: string): Promise<void> => {
    statement.canceledAs = as
    while (!statement.answer) {
      await monitor`select pg_cancel_backend(${statement.session.pid})`
      await waitFor(statement, patience)
    }
  }
  /** A statement that has been sent, answered or not. */
  const execute = async (
    { name: by }: Process,
    session: Session,
    query: Query,
    settled: (answer: Answer) => void,
  ): Promise<Statement> => {
    const text = textOf(query)
    const statement: Statement = { query, label: labelOf(text), session, answer: null, canceledAs: null, settled }
    const { resolve, reject } = query
    const answered = (answer: Answer): void => {
      const isCanceled = 'error' in answer && statement.canceledAs !== null
      statement.answer = isCanceled ? { error: withCode('canceled', statement.canceledAs ?? '') } : answer
      query.resolve = resolve
      query.reject = reject
      statement.settled(statement.answer)
    }
    query.resolve = (value) => answered({ value: /order by [^)]*$/.test(text) ? value : inOrder(value) })
    query.reject = (error) => answered({ error })
    const clock = /now\(\)|clock_timestamp/.test(text) ? setClock(session) : null
    const writer = /insert into call_events/.test(text) ? setWriter(session, by) : null
    session.execute(query)
    // In a transaction that has failed they fail too, and the statement says why.
    await Promise.allSettled([clock, writer])
    await settle(statement)
    if (!statement.answer) {
      loop.note(`db waits for a lock: ${statement.label}`)
      if (await isDeadlocked(statement)) await cancel(statement, '40P01')
      else blocked.push(statement)
    }
    return statement
  }
  /** Somebody may have got what it waits for. */
  const settleBlocked = async (): Promise<void> => {
    for (let went = true; went;) {
      went = false
      for (const statement of blocked.slice()) {
        await settle(statement)
        if (!statement.answer) continue
        blocked.splice(blocked.indexOf(statement), 1)
        went = true
      }
    }
  }
  const unblock = async (statement: Statement, as: string): Promise<void> => {
    const index = blocked.indexOf(statement)
    if (index < 0) return
    blocked.splice(index, 1)
    await cancel(statement, as)
    await settleBlocked()
  }
  const isAway = (process: Process): boolean => (awayUntil.get(process) ?? 0) > loop.now()
  const refused = (): Error => withCode('connect ECONNREFUSED', 'ECONNREFUSED')
  const deadlineError = (): Error =>
    Object.assign(withCode('the database gave no answer within 5 s', 'QUERY_DEADLINE'), { name: 'QueryDeadline' })

  /** A question of a process, from here to its answer. */
  const open = (process: Process, name: string, reject: (error: Error) => void): Asked => {
    const one: Asked = {
      process,
      isOver: false,
      isSent: false,
      drop: null,
      cancelDeadline: () => undefined,
      lose(error) {
        if (one.isOver) return
        one.isOver = true
        underWay.delete(one)
        one.cancelDeadline()
        loop.happen(process, `db ${name} back`, 0, `db > ${process.name} lost: ${error.message}`, () => reject(error))
      },
    }
    one.cancelDeadline = process.clock.after(limit, () => {
      // What came in while the process stood still is read first.
      loop.happen(process, `${process.name} turn`, 0, `${process.name} deadline`, () => one.lose(deadlineError()))
    })
    underWay.add(one)
    return one
  }
  const answer = (
    one: Asked & { cancelDeadline?: () => void },
    name: string,
    label: string,
    tell: () => void,
  ): void => {
    if (one.isOver) return
    loop.happen(one.process, `db ${name} back`, weather.delay(), `db > ${one.process.name} ${label}`, () => {
      if (one.isOver) return
      one.isOver = true
      underWay.delete(one)
      one.cancelDeadline()
      tell()
    })
  }

  const ask = (process: Process, query: Query): void => {
    const name = `${process.name} q${++asked}`
    const { resolve, reject } = query
    const began = loop.now()
    if (isAway(process)) {
      loop.happen(process, `db ${name} back`, 1, `db > ${process.name} refused`, () => reject(refused()))
      return
    }
    const one = open(process, name, reject)
    const label = labelOf(textOf(query))
    loop.happen(null, `db ${name}`, weather.delay(), `db < ${process.name} ${label}`, async () => {
      // A connection that ended on the way, or a deadline that passed.
      if (one.isOver && (!process.isDead || random.next() < 0.5)) return
      if (loop.now() - began > limit) return
      one.isSent = true
      const session = take()
      const statement = await execute(process, session, query, (given) => {
        give(session)
        answer(one, name, label, () => ('error' in given ? reject(given.error) : resolve(given.value)))
      })
      if (!statement.answer)
        loop.happen(null, `db ${name} late`, limit - (loop.now() - began), 'db gives up', () =>
          unblock(statement, '57014'),
        )
    })
  }

  const begin = (process: Process, work: (tx: Transaction) => unknown): Promise<unknown> => {
    const name = `${process.name} t${++asked}`
    const { promise, resolve, reject } = Promise.withResolvers<unknown>()
    const began = loop.now()
    if (isAway(process)) {
      loop.happen(process, `db ${name} back`, 1, `db > ${process.name} refused`, () => reject(refused()))
      return promise
    }
    let failure: { readonly error: unknown } | null = null
    let session: Session | null = null
    let waiting: Statement | null = null
    let lockTimeout: number | null = null
    let isEnded = false
    const queued: (() => Promise<void>)[] = []
    const ended = async (how: 'commit' | 'rollback'): Promise<Answer> => {
      isEnded = true
      if (!session) return { value: null }
      const old = session
      session = null
      const done = await old.sql.unsafe(how).then(
        (value): Answer => ({ value }),
        (error: unknown): Answer => ({ error }),
      )
      give(old)
      await settleBlocked()
      return done
    }
    /** Its connection is gone. */
    const drop = async (): Promise<void> => {
      if (isEnded) return
      isEnded = true
      if (waiting) await unblock(waiting, '57014')
      if (session) await ended('rollback')
    }
    const one = open(process, name, (error) => {
      failure ??= { error }
      loop.happen(null, `db ${name} end`, 0, `db drops ${process.name}`, drop)
      reject(error)
    })
    one.drop = drop
    /** In the order of the transaction, one after the other. */
    const inTurn = (label: string, act: () => Promise<void>): void => {
      loop.happen(null, `db ${name}`, weather.delay(), `db < ${process.name} ${label}`, async () => {
        if (waiting || queued.length > 0) queued.push(act)
        else await act()
      })
    }
    const goOn = (): void => {
      waiting = null
      const left = queued.splice(0)
      for (const act of left) loop.happen(null, `db ${name}`, 0, `db goes on for ${process.name}`, act)
    }
    const tell = (label: string, act: () => void): void => {
      if (one.isOver) return
      loop.happen(process, `db ${name} back`, weather.delay(), `db > ${process.name} ${label}`, () => {
        if (!one.isOver) act()
      })
    }
    const askWithin = (query: Query): void => {
      const { resolve, reject } = query
      query.catch((error: unknown) => (failure ??= { error }))
      if (failure) return reject(failure.error)
      const label = labelOf(textOf(query))
      inTurn(label, async () => {
        if (isEnded) return
        const isFirst = session === null
        session ??= take()
        const begun = isFirst ? send(session, session.sql.unsafe('begin')) : null
        const own = session
        waiting = null
        const statement = await execute(process, own, query, (given) => {
          tell(label, () => ('error' in given ? reject(given.error) : resolve(given.value)))
          if (waiting) goOn()
        })
        await begun
        if (/lock_timeout/.test(textOf(query))) {
          lockTimeout = 100
          await own.sql.unsafe('set local lock_timeout = 0').catch(goOnWithout)
        }
        if (statement.answer) return
        waiting = statement
        const left = limit - (loop.now() - began)
        const ms = lockTimeout === null ? left : Math.min(left, lockTimeout)
        const as = ms === left ? '57014' : '55P03'
        loop.happen(null, `db ${name} lock`, Math.max(0, ms), 'db waits no longer', () => unblock(statement, as))
      })
    }
    const make = base as unknown as (...given: readonly unknown[]) => unknown
    const watched = (made: unknown): unknown => {
      if (isQuery(made)) made.handler = askWithin
      return made
    }
    const tx = Object.assign((...given: readonly unknown[]) => watched(make(...given)), {
      json: base.json,
      array: base.array,
      typed: base.typed,
      types: base.types,
      options: base.options,
      unsafe: (...given: Parameters<Sql['unsafe']>) => watched(base.unsafe(...given)),
    }) as unknown as Transaction
    const commit = (value: unknown): void =>
      inTurn('commit', async () => {
        if (isEnded) return
        one.isSent = true
        const isLate = loop.now() - began > limit - 100
        const done = await ended(isLate ? 'rollback' : 'commit')
        if ((losesUntil.get(process) ?? 0) > loop.now()) return one.lose(withCode('read ECONNRESET', 'ECONNRESET'))
        answer(one, name, 'committed', () =>
          isLate ? reject(deadlineError()) : 'error' in done ? reject(done.error) : resolve(value),
        )
      })
    const rollback = (error: unknown): void =>
      inTurn('rollback', async () => {
        if (isEnded) return
        await ended('rollback')
        answer(one, name, 'rolled back', () => reject(failure?.error ?? error))
      })
    loop.happen(process, `db ${name} back`, weather.delay() + weather.delay(), `db > ${process.name} begun`, () => {
      if (one.isOver) return
      const given = Promise.try(() => work(tx)).then((made) => (Array.isArray(made) ? Promise.all(made) : made))
      given.then(
        (value: unknown) => (one.isOver ? undefined : failure ? rollback(failure.error) : commit(value)),
        (error: unknown) => (one.isOver ? undefined : rollback(error)),
      )
    })
    return promise
  }

  const sqlOf = (process: Process): Sql => {
    const make = base as unknown as (...given: readonly unknown[]) => unknown
    const watched = (made: unknown): unknown => {
      if (isQuery(made)) made.handler = (query) => ask(process, query)
      return made
    }
    return Object.assign((...given: readonly unknown[]) => watched(make(...given)), {
      json: base.json,
      array: base.array,
      typed: base.typed,
      types: base.types,
      options: base.options,
      unsafe: (...given: Parameters<Sql['unsafe']>) => watched(base.unsafe(...given)),
      begin: (...given: readonly unknown[]) => begin(process, given.at(-1) as (tx: Transaction) => unknown),
      end: () => Promise.resolve(),
    }) as unknown as Sql
  }
  /** What was on its way to be committed may be committed all the same. */
  const cut = async (process: Process): Promise<void> => {
    for (const one of [...underWay].filter((of) => of.process === process)) {
      const { drop } = one
      one.lose(withCode('read ECONNRESET', 'ECONNRESET'))
      if (drop && (one.isSent || random.next() < 0.7)) await drop()
      else if (drop) loop.happen(null, `db cut ${++asked}`, 50, `db drops ${process.name}`, drop)
      one.isOver = true
      underWay.delete(one)
    }
  }
  return {
    sqlOf,
    cut,
    async away(process, ms) {
      awayUntil.set(process, loop.now() + ms)
      await cut(process)
    },
    loseCommits: (process, ms) => void losesUntil.set(process, loop.now() + ms),
    leap: (ms) => void (ahead += ms),
    isIdle: () => underWay.size === 0 && blocked.length === 0,
    async close() {
      for (const one of underWay) await one.drop?.()
      for (const statement of blocked.slice()) await unblock(statement, '57014')
    },
  }
}
