/**
 * The streams of `/mcp` over every HTTP driver that loads here: what they tell, to whom, and when they end. docs/contract/mcp.md "Streams". With
 * LISTENER_DRIVER set only that driver is proved; uws-under-newer-libc.test.ts runs this file so.
 */
import type { Test } from 'tap'
import { eachDriver, serve, type Driver } from '../scenes/listener.ts'
import { modernOf, openMcp } from '../scenes/mcp.ts'

const filter = { notifications: { toolsListChanged: true } }
const changed = { kind: 'tools_list_changed' } as const

/** Two processes on one bus, each with its listener. */
async function openTwo(t: Test, driver: Driver, maxStreams = { inAll: 100, ofAccount: 2 }) {
  const mcp = await openMcp(t, { maxStreams })
  const processes = [mcp.endpoint, mcp.openProcess()]
  const served = await Promise.all(processes.map(({ fetch }) => serve(t, driver, { fetch })))
  const listen = async (token: string, at = 0) => {
    const leaving = new AbortController()
    const { headers, json } = modernOf('subscriptions/listen', filter)
    const response = await fetch(`${served[at]?.url}/mcp`, {
      method: 'POST',
      headers: {
        ...headers,
        authorization: `Bearer ${token}`,
        accept: 'application/json, text/event-stream',
        'content-type': 'application/json',
      },
      body: JSON.stringify(json),
      signal: leaving.signal,
    })
    return { response, messages: messagesOf(response), leave: () => leaving.abort() }
  }
  return { ...mcp, processes, served, listen }
}

/** One after the other, as they come. */
async function* messagesOf({ body }: Response) {
  let text = ''
  for await (const piece of body ?? []) {
    text += new TextDecoder().decode(piece)
    const frames = text.split('\n\n')
    text = frames.pop() ?? ''
    for (const frame of frames)
      for (const line of frame.split('\n'))
        if (line.startsWith('data: {')) yield JSON.parse(line.slice('data: '.length))
  }
}

const next = async (messages: AsyncGenerator) => (await messages.next()).value

void eachDriver({
  async 'a change is told in every process, to the streams of its account only'(t, driver) {
    const { listen, grant, other, own, processes } = await openTwo(t, driver)
    const [first, second, foreign] = [
      await listen(grant()),
      await listen(grant(), 1),
      await listen(grant({ accountId: other.id })),
    ]
    for (const { messages, response } of [first, second, foreign]) {
      t.match(response.headers.get('content-type'), 'text/event-stream')
      t.equal((await next(messages)).method, 'notifications/subscriptions/acknowledged')
    }
    processes[0]?.changed(own.id, changed)
    for (const { messages } of [first, second])
      t.equal((await next(messages)).method, 'notifications/tools/list_changed')
    processes[1]?.changed(other.id, changed)
    processes[1]?.changed(own.id, changed)
    t.equal((await next(first.messages)).method, 'notifications/tools/list_changed')
    t.equal((await next(foreign.messages)).method, 'notifications/tools/list_changed')
    await processes[0]?.close()
    t.equal((await next(foreign.messages)).result?.resultType, 'complete', 'and nothing else')
    for (const { leave } of [first, second, foreign]) leave()
  },

  async 'an account has so many of them, and a client that leaves frees its place'(t, driver) {
    const { listen, grant, other } = await openTwo(t, driver)
    const token = grant()
    const [one, two] = [await listen(token), await listen(token)]
    await next(one.messages)
    const third = await listen(token)
    t.match(await third.response.json(), { error: { message: 'Subscription limit reached' } })
    const foreign = await listen(grant({ accountId: other.id }))
    t.match(foreign.response.headers.get('content-type'), 'text/event-stream', 'of another account it takes nothing')
    one.leave()
    for (;;) {
      const again = await listen(token)
      if (!again.response.headers.get('content-type')?.startsWith('text/event-stream')) {
        await again.response.text()
        continue
      }
      t.pass('there is room again')
      again.leave()
      break
    }
    for (const { leave } of [two, foreign]) leave()
  },

  async 'a stream ends a minute after its token lost its power'(t, driver) {
    const { listen, grant, tokens, hands, own, processes } = await openTwo(t, driver)
    const [lost, kept] = [grant(), grant()]
    const streams = [await listen(lost), await listen(kept)] as const
    for (const { messages } of streams) await next(messages)
    tokens.delete(lost)
    hands.turn(60_000)
    t.equal((await streams[0].messages.next()).done, true)
    hands.turn(60_000)
    hands.turn(60_000)
    processes[0]?.changed(own.id, changed)
    t.equal((await next(streams[1].messages)).method, 'notifications/tools/list_changed', 'the other goes on')
    hands.turn(3_600_000)
    t.equal((await streams[1].messages.next()).done, true, 'until its token expires')
  },

  async 'one that asks for nothing is over at once, and nothing looks after it'(t, driver) {
    const { send, hands } = await openTwo(t, driver)
    const before = hands.waiting()
    for (const notifications of [{}, { toolsListChanged: false }, 'all'])
      await send('subscriptions/listen', { notifications })
    t.equal(hands.waiting(), before)
  },

  async 'a service that stops tells its streams, and takes no more'(t, driver) {
    const { listen, grant, processes } = await openTwo(t, driver)
    const { messages } = await listen(grant())
    await next(messages)
    await processes[0]?.close()
    t.equal((await next(messages)).result.resultType, 'complete')
    t.equal((await messages.next()).done, true)
  },

  async 'what is not listened for ends at once'(t, driver) {
    const { served, grant } = await openTwo(t, driver)
    const { headers, json } = modernOf('subscriptions/listen', { notifications: { promptsListChanged: true } })
    const token = grant()
    for (let count = 0; count < 4; count += 1) {
      const response = await fetch(`${served[0]?.url}/mcp`, {
        method: 'POST',
        headers: {
          ...headers,
          authorization: `Bearer ${token}`,
          'content-type': 'application/json',
          accept: 'application/json, text/event-stream',
        },
        body: JSON.stringify(json),
      })
      t.match(await response.text(), /"resultType":"complete"/)
    }
  },
})
