/** The way out of the service: where webhooks may go, and what becomes of an endpoint that misbehaves. */
import { once } from 'node:events'
import { createServer as createHttpServer } from 'node:http'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { test, type Test } from 'tap'
import { createEgressGuard, type Resolve } from '../../actors/webhooks/egress-guard.ts'
import { createWebhookSender, type SendRequest, type SendResult } from '../../actors/webhooks/sender.ts'
import { headersOf, toSigningKey } from '../../actors/webhooks/sign.ts'
import { silentLog } from '../../model/log.ts'
import { lastingClock } from '../fake/lasting-clock.ts'
import { openFakeWebhookReceiver, type ScriptedAnswer } from '../fake/webhook-receiver.ts'

const secret = 'whsec_for-tests'
/** Far beyond any test: what ends sooner did not end by time. */
const long = 60_000

function openSender(t: Test, allowHosts: readonly string[], resolve?: Resolve) {
  const sender = createWebhookSender({
    allowHosts,
    log: silentLog,
    clock: { ...lastingClock, now: () => 0 },
    ...(resolve && { resolve }),
  })
  t.teardown(() => sender.close())
  return sender
}

function requestTo(url: string, over: Partial<SendRequest> = {}): SendRequest {
  const body = '{"type":"call.ended","data":{"callId":"c"}}'
  const event = { type: 'call.ended', eventId: 'e', eventAt: 0, delivery: 'async', accountId: 'a', attempt: 1 } as const
  const headers = headersOf({ ...event, sentAt: 0, body, customHeaders: {} }, toSigningKey(secret))
  return { url, headers, body, timeout: long, answer: 'whole', ...over }
}

const reasonOf = (result: SendResult): string =>
  result.kind === 'failed' ? result.reason : `answered ${result.status}`

async function listen(t: Test, connected: (socket: Socket) => void): Promise<number> {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket.on('error', () => {}))
    connected(socket)
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return (server.address() as AddressInfo).port
}

test('targets that are private, loopback, link-local or metadata addresses are refused, however they are written', async (t) => {
  let asked = 0
  const port = await listen(t, () => (asked += 1))
  const sender = openSender(t, [], () => Promise.reject(new Error('a literal is never resolved')))
  const hosts = `127.0.0.1 2130706433 0x7f000001 0x7f.1 0177.0.0.1 017700000001 127.1 127.0.0.1. 0 0.0.0.0 １２７.０.０.１ 127。0。0。1
    [::1] [::] [::ffff:127.0.0.1] [::ffff:7f00:1] [0:0:0:0:0:ffff:7f00:1] [64:ff9b::7f00:1] [2002:7f00:1::] [fe80::1] [fd00:ec2::254]
    169.254.169.254 2852039166 0xa9fea9fe 10.0.0.1 172.16.0.1 192.168.1.1 100.64.0.1 100.100.100.200 168.63.129.16 224.0.0.1
    255.255.255.255 %31%32%37.0.0.1`
  for (const host of hosts.split(/\s+/)) {
    t.equal(reasonOf(await sender.send(requestTo(`https://${host}:${port}/`))), 'refused', `https ${host}`)
    t.equal(reasonOf(await sender.send(requestTo(`http://${host}:${port}/`))), 'refused', `http ${host}`)
  }
  t.equal(asked, 0, 'nothing was dialled')
})

test('targets must be https unless they are allowed, and carry neither credentials nor another scheme', async (t) => {
  const sender = openSender(t, [], () => Promise.reject(new Error('never resolved')))
  for (const url of [
    'http://8.8.8.8/',
    'http://example.com/',
    'ftp://example.com/',
    'file:///etc/passwd',
    'https://u:p@example.com/',
    'nonsense',
    '',
  ])
    t.equal(reasonOf(await sender.send(requestTo(url))), 'refused', url)
  const permissive = openSender(t, ['10.0.0.0/8'], async () => ['8.8.8.8'])
  t.equal(
    reasonOf(await permissive.send(requestTo('http://example.com/'))),
    'refused',
    'http to an address outside of the list',
  )
})

test('a name is refused when any of its addresses is', async (t) => {
  const answers: Record<string, string[]> = {
    'private.test': ['10.0.0.1'],
    'mixed.test': ['8.8.8.8', '127.0.0.1'],
    'six.test': ['2606:4700::1111', 'fd00::1'],
    'mapped.test': ['::ffff:192.168.0.1'],
    'nat64.test': ['64:ff9b::a9fe:a9fe'],
    'local.test': ['fe80::1%eth0'],
  }
  const sender = openSender(t, [], async (hostname) => answers[hostname] ?? [])
  for (const name of Object.keys(answers))
    t.equal(reasonOf(await sender.send(requestTo(`https://${name}/`))), 'refused', name)
  t.equal(reasonOf(await sender.send(requestTo('https://empty.test/'))), 'transport', 'no address at all')
})

test('the address that was judged is the address that is dialled, at every connection anew', async (t) => {
  const receiver = await openFakeWebhookReceiver(t)
  receiver.trust('/', secret)
  receiver.script('/', [{ status: 200, headers: { connection: 'close' } }])
  const rebinding = [['127.0.0.1'], ['10.0.0.1']]
  let asked = 0
  const sender = openSender(t, ['127.0.0.0/8'], async () => rebinding[asked++] ?? [])
  const url = receiver.url('/').replace('127.0.0.1', 'receiver.test')
  t.equal(reasonOf(await sender.send(requestTo(url))), 'answered 200')
  t.equal((await receiver.next()).headers.host, new URL(url).host, 'by the name, which only the judge resolved')
  t.equal(reasonOf(await sender.send(requestTo(url))), 'refused')
  t.equal(asked, 2)
})

test('a name is dialled with TLS under its own name', async (t) => {
  const hello = Promise.withResolvers<Buffer>()
  const port = await listen(t, (socket) =>
    socket.once('data', (bytes) => {
      hello.resolve(bytes)
      socket.destroy()
    }),
  )
  const sender = openSender(t, ['127.0.0.1'], async () => ['127.0.0.1'])
  t.equal(reasonOf(await sender.send(requestTo(`https://receiver.test:${port}/`))), 'transport')
  const bytes = await hello.promise
  t.equal(bytes[0], 22, 'a TLS handshake')
  t.ok(bytes.includes('receiver.test'), 'with the server name')
})

test('WEBHOOK_ALLOW_HOSTS takes host names, addresses and networks, and nothing else', async (t) => {
  const receiver = await openFakeWebhookReceiver(t)
  receiver.trust('/', secret)
  const url = receiver.url('/')
  for (const entry of ['127.0.0.1', '127.0.0.0/8', ' 127.0.0.1 ', '::ffff:127.0.0.1'])
    t.equal(reasonOf(await openSender(t, [entry]).send(requestTo(url))), 'answered 200', entry)
  const named = openSender(t, ['LocalHost'])
  t.equal(reasonOf(await named.send(requestTo(url.replace('127.0.0.1', 'localhost')))), 'answered 200')
  t.equal(reasonOf(await named.send(requestTo(url))), 'refused', 'the name is allowed, not its address')
  for (const entry of ['10.0.0.0/', '10.0.0.0/33', 'a/b', 'http://x', 'x:3000', 'a b', '*'])
    t.throws(() => createEgressGuard({ allowHosts: [entry] }), entry)
})

test('an endpoint that misbehaves is a result, never an exception and never a wait', async (t) => {
  const receiver = await openFakeWebhookReceiver(t)
  const sender = openSender(t, ['127.0.0.1'])
  receiver.trust('/', secret)
  const send = (answer: ScriptedAnswer, over: Partial<SendRequest> = {}) => {
    receiver.script('/', [answer])
    return sender.send(requestTo(receiver.url('/'), over))
  }
  const soon = { timeout: 150 }
  const excerpt = { answer: 'excerpt' } as const
  t.strictSame(await send({ status: 500, body: 'no', headers: { 'retry-after': '3' } }), {
    kind: 'answered',
    status: 500,
    body: 'no',
    retryAfter: 3000,
  })
  t.equal(reasonOf(await send({ wire: 'hang' }, soon)), 'timeout')
  t.equal(reasonOf(await send({ wire: 'stall' }, soon)), 'timeout', 'the time counts to the end of the body')
  t.equal(reasonOf(await send({ wire: 'reset' })), 'transport')
  t.equal(reasonOf(await send({ wire: 'garbage' })), 'transport')
  t.equal(reasonOf(await send({ wire: 'huge' })), 'too_large')
  t.equal(reasonOf(await send({ wire: 'huge' }, excerpt)), 'answered 200')
  const stalled = await send({ wire: 'stall' }, { ...soon, ...excerpt })
  t.match(stalled, { kind: 'answered', status: 200, body: '{"config":' }, 'the status of a delivery is all that counts')
  const long = await send({ status: 400, body: 'é'.repeat(5000) }, excerpt)
  t.equal(long.kind === 'answered' && long.body, 'é'.repeat(1024))
  const biggest = await send({ status: 200, body: 'x'.repeat(256 * 1024) })
  t.equal(biggest.kind === 'answered' && biggest.body.length, 256 * 1024)
  const closedPort = await listen(t, () => {})
  const odd = await sender.send(requestTo(receiver.url('/'), { headers: { Expect: '100-continue' } }))
  t.equal(reasonOf(odd), 'transport', 'a header that HTTP clients may not send')
  t.equal(
    reasonOf(await sender.send(requestTo(`https://127.0.0.1:${closedPort}`, soon))),
    'timeout',
    'a handshake that never ends',
  )
})

test('what TLS says of a receiver without TLS is told in its words, and nothing of how it was found', async (t) => {
  const port = await listen(t, (socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'))
  const result = await openSender(t, ['127.0.0.1']).send(requestTo(`https://127.0.0.1:${port}/`))
  t.match(result, { kind: 'failed', reason: 'transport', details: /^ERR_SSL_\w+: [\w ]+$/ })
})

test('nobody listening is a transport failure', async (t) => {
  const server = createServer()
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  const result = await openSender(t, ['127.0.0.1']).send(requestTo(`http://127.0.0.1:${port}/`))
  t.equal(reasonOf(result), 'transport')
  t.match(result, { details: /ECONNREFUSED/ })
})

test('a redirect is answered by nobody', async (t) => {
  const receiver = await openFakeWebhookReceiver(t)
  receiver.trust('/', secret)
  receiver.trust('/elsewhere', secret)
  const sender = openSender(t, ['127.0.0.1'])
  for (const status of [301, 302, 303, 307, 308]) {
    receiver.script('/', [{ status, headers: { location: receiver.url('/elsewhere') } }])
    t.equal(reasonOf(await sender.send(requestTo(receiver.url('/')))), `answered ${status}`)
  }
  t.strictSame(new Set(receiver.deliveries.map(({ path }) => path)), new Set(['/']))
})

test('name resolution counts into the timeout', async (t) => {
  const sender = openSender(t, [], () => new Promise(() => {}))
  t.equal(reasonOf(await sender.send(requestTo('https://slow.test/', { timeout: 50 }))), 'timeout')
})

test('connections are kept for the next delivery, also after a long answer', async (t) => {
  let connections = 0
  const server = createHttpServer((request, response) =>
    request.resume().on('end', () => response.end('x'.repeat(60_000))),
  )
  server.on('connection', () => (connections += 1))
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => server.close())
  const sender = openSender(t, ['127.0.0.1'])
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  for (let count = 0; count < 20; count += 1) await sender.send(requestTo(url, { answer: 'excerpt' }))
  // The second is for a delivery that comes before the end of the first has gone all the way down.
  t.ok(connections <= 2, `${connections} connections`)
  await sender.close()
})

test('deliveries that hang do not hold up a sync hook to the same host', async (t) => {
  const receiver = await openFakeWebhookReceiver(t)
  receiver.trust('/hangs', secret)
  receiver.trust('/hook', secret)
  receiver.script('/hangs', [{ wire: 'hang' }], { forever: true })
  const sender = openSender(t, ['127.0.0.1'])
  const stop = new AbortController()
  const hanging = Array.from({ length: 70 }, () =>
    sender.send(requestTo(receiver.url('/hangs'), { answer: 'excerpt', signal: stop.signal })),
  )
  for (let count = 0; count < 64; count += 1) await receiver.next('call.ended', '/hangs')
  t.equal(reasonOf(await sender.send(requestTo(receiver.url('/hook')))), 'answered 200')
  t.equal(
    receiver.deliveries.filter(({ path }) => path === '/hangs').length,
    64,
    'connections to one origin are bounded',
  )
  stop.abort()
  for (const result of await Promise.all(hanging)) t.equal(reasonOf(result), 'transport')
})

test('close ends what is under way, and nothing is sent after it', async (t) => {
  const receiver = await openFakeWebhookReceiver(t)
  receiver.trust('/', secret)
  receiver.script('/', [{ wire: 'hang' }])
  const sender = openSender(t, ['127.0.0.1'])
  const sending = sender.send(requestTo(receiver.url('/')))
  await receiver.next()
  await Promise.all([sender.close(), sender.close()])
  t.equal(reasonOf(await sending), 'transport')
  t.equal(reasonOf(await sender.send(requestTo(receiver.url('/')))), 'transport')
  t.equal(receiver.deliveries.length, 1)
})
