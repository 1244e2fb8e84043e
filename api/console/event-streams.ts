/**
 * Owns the streams of server-sent events that the console listens on (HTML, section 9.2): how many a user may have, that one ends with what its user
 * may, and that a browser that reads slowly costs no room: what it has missed is told to it as the whole.
 */
import type { Cancel, Clock } from '../../model/clock.ts'
import type { AccountId, CallId, UserId } from '../../model/ids.ts'
import { Problem } from '../../model/problem.ts'
import type { PageSessions } from '../../model/user.ts'
import type { Change, LiveCalls, Running, Watcher } from './live-calls.ts'

const most = { inAll: 1_000, ofUser: 12 } as const
/** Ms. Proxies end what is silent for a minute. */
const beatEvery = 15_000
/** Beats between two looks at the session. */
const beatsPerLook = 4
/** Events that wait for a browser. */
const mostWaiting = 8

type Deps = { readonly sessions: PageSessions; readonly clock: Clock; readonly live: LiveCalls }
type Whose = {
  readonly userId: UserId
  readonly accountId: AccountId
  /** Null: of all calls of the account. */
  readonly callId: CallId | null
}

const headers = { 'content-type': 'text/event-stream', 'cache-control': 'no-store', 'x-accel-buffering': 'no' }

const encoder = new TextEncoder()
const eventOf = (name: string, json: string): Uint8Array => encoder.encode(`event: ${name}\ndata: ${json}\n\n`)
const wholeOf = (running: Running): Uint8Array => eventOf('calls', `{"calls":[${[...running.values()].join(',')}]}`)
const changeOf = (changed: Change['changed'], gone: Change['gone']): Uint8Array =>
  eventOf('change', `{"calls":[${changed.join(',')}],"gone":${JSON.stringify(gone)}}`)

export function createEventStreams({ sessions, clock, live }: Deps) {
  const open = new Map<UserId, number>()
  let inAll = 0
  const count = (userId: UserId, by: 1 | -1): void => {
    inAll += by
    const left = (open.get(userId) ?? 0) + by
    if (left > 0) open.set(userId, left)
    else open.delete(userId)
  }
  const mayStill = async (request: Request, { userId, accountId }: Whose): Promise<boolean> => {
    const signedIn = await sessions.findSignedIn(request)
    return signedIn?.userId === userId && signedIn.memberships.some((one) => one.accountId === accountId)
  }

  return {
    /** Throws Problem RATE_LIMITED. */
    open(request: Request, whose: Whose): Response {
      // Nobody would read its stream, nor end it.
      if (request.method === 'HEAD') return new Response(null, { headers })
      if (inAll >= most.inAll || (open.get(whose.userId) ?? 0) >= most.ofUser)
        throw new Problem('RATE_LIMITED', 'Too many pages of the console are open. Close one.')
      count(whose.userId, 1)
      const watched = whose.callId === null ? live.watch : watchOne(live.watch, whose.callId)
      let following: Following | null = null
      const body = new ReadableStream<Uint8Array>(
        {
          start(controller) {
            const watch: LiveCalls['watch'] = (accountId, watcher, late) => {
              const stop = watched(accountId, watcher, late)
              return () => {
                stop()
                count(whose.userId, -1)
              }
            }
            following = follow({
              controller,
              clock,
              watch,
              accountId: whose.accountId,
              mayStill: () => mayStill(request, whose),
            })
          },
          pull: () => following?.pulled(),
          cancel: () => following?.end(),
        },
        { highWaterMark: mostWaiting },
      )
      return new Response(body, { headers })
    },
  }
}

/** The same of one call: told when it has changed, and when it is over. */
const watchOne =
  (watch: LiveCalls['watch'], callId: CallId): LiveCalls['watch'] =>
  (accountId, watcher) => {
    /** Null: nothing was told yet. */
    let told: string | undefined | null = null
    return watch(accountId, (running) => {
      const call = running.get(callId)
      if (call === told) return
      const wasThere = typeof told === 'string'
      told = call
      if (call !== undefined) watcher(new Map([[callId, call]]), { changed: [call], gone: [] })
      else watcher(new Map(), { changed: [], gone: wasThere ? [callId] : [] })
    })
  }

type Following = { pulled(): void; end(): void }

type Follow = {
  readonly controller: ReadableStreamDefaultController<Uint8Array>
  readonly clock: Clock
  readonly watch: LiveCalls['watch']
  readonly accountId: AccountId
  mayStill(): Promise<boolean>
}

function follow({ controller, clock, watch, accountId, mayStill }: Follow): Following {
  let latest: Running | null = null
  let isBehind = false
  let isOver = false
  const hasRoom = (): boolean => (controller.desiredSize ?? 0) > 0
  controller.enqueue(encoder.encode('retry: 2000\n\n'))
  const tell: Watcher = (running, { changed, gone }) => {
    const isFirst = latest === null
    latest = running
    if (isBehind) return
    if (isFirst) controller.enqueue(wholeOf(running))
    else if (hasRoom()) controller.enqueue(changeOf(changed, gone))
    else isBehind = true
  }
  const unwatch = watch(accountId, tell, () => {
    if (hasRoom()) controller.enqueue(eventOf('late', '{}'))
  })
  async function beat(beats: number): Promise<void> {
    // What cannot be found out now is asked again.
    const isGood = beats % beatsPerLook !== 0 || (await mayStill().catch(() => true))
    if (isOver) return
    if (!isGood) {
      end()
      return controller.close()
    }
    if (hasRoom()) controller.enqueue(encoder.encode(': \n\n'))
    cancel = clock.after(beatEvery, () => void beat(beats + 1))
  }
  let cancel: Cancel = clock.after(beatEvery, () => void beat(1))
  function end(): void {
    if (isOver) return
    isOver = true
    cancel()
    unwatch()
  }
  return {
    end,
    pulled() {
      if (!isBehind || isOver || !latest) return
      isBehind = false
      controller.enqueue(wholeOf(latest))
    },
  }
}
