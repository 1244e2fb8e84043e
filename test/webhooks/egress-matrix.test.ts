/**
 * Where webhooks may go, as a matrix: every way to write or resolve to an address that is not public, by both ways out (deliveries and sync
 * hooks), and through creation of a subscription's target.
 */
import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'
import t, { test, type Test } from 'tap'
import { systemClock } from '../../app/clock.ts'
import { askHook } from '../../actors/webhooks/ask-hook.ts'
import type { Resolve } from '../../actors/webhooks/egress-guard.ts'
import { createWebhookSender, type WebhookSender } from '../../actors/webhooks/sender.ts'
import { createQuietLog } from '../fake/quiet-log.ts'
import { createRandom } from '../fake/random.ts'
import { newId } from '../scenes/tenant.ts'
import { openFakeWebhookReceiver } from '../fake/webhook-receiver.ts'

const noResolution: Resolve = () => Promise.reject(new Error('a literal is never resolved'))
const secret = 'secret-of-the-matrix'

function openSender(t: Test, allowHosts: readonly string[], resolve: Resolve = noResolution): WebhookSender {
  const sender = createWebhookSender({
    allowHosts,
    log: createQuietLog(),
    clock: { ...systemClock, now: () => 0 },
    resolve,
  })
  t.teardown(() => sender.close())
  return sender
}

/** What became of it by both ways; one word when they agree. */
async function fateOf(sender: WebhookSender, url: string): Promise<string> {
  const request = { url, headers: {}, body: '{}', timeout: 5_000 }
  const delivered = await sender.send({ ...request, answer: 'excerpt' })
  const question = {
    type: 'call.tool_call',
    url,
    secret,
    headers: {},
    timeout: 5_000,
    accountId: 'a',
    data: {},
  } as const
  const asked = await askHook({ sender, now: () => 0, newId }, question)
  const delivery = delivered.kind === 'failed' ? delivered.reason : `answered ${delivered.status}`
  const hook =
    asked.status === null && asked.kind === 'failed' ? asked.details.split(':')[0] : `answered ${asked.status}`
  return delivery === hook ? delivery : `${delivery}, but the hook ${hook}`
}

/** Nothing on this machine must ever hear of a refused target. */
async function openTrap() {
  let dialled = 0
  const server = createServer((socket) => {
    dialled += 1
    socket.destroy()
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => void server.close())
  return { port: (server.address() as AddressInfo).port, dialled: () => dialled }
}
const opened = openTrap()

/** Every way in which RFC 3986 parsers and resolvers have read one IPv4 address. */
function spellingsOf(address: string): string[] {
  const bytes = address.split('.').map(Number) as [number, number, number, number]
  const [a, b, c, d] = bytes
  const whole = ((a << 24) | (b << 16) | (c << 8) | d) >>> 0
  const hex = (value: number, width = 0) => value.toString(16).padStart(width, '0')
  const low = `${hex((a << 8) | b)}:${hex((c << 8) | d)}`
  return [
    address,
    `${address}.`,
    String(whole),
    `0x${hex(whole)}`,
    `0X${hex(whole).toUpperCase()}`,
    `0${whole.toString(8)}`,
    bytes.map((byte) => `0${byte.toString(8)}`).join('.'),
    bytes.map((byte) => `0x${hex(byte)}`).join('.'),
    bytes.map((byte) => `000${byte.toString(8)}`).join('.'),
    `${a}.${b}.${(c << 8) | d}`,
    `${a}.${(b << 16) | (c << 8) | d}`,
    `${a}.0x${hex(b)}.0${c.toString(8)}.${d}`,
    address.replace(/\d/g, (digit) => String.fromCodePoint(0xff10 + Number(digit))),
    address.replaceAll('.', '。'),
    address.replaceAll('.', '%2e'),
    address.replace(/^\d/, (digit) => `%3${digit}`),
    `[::ffff:${address}]`,
    `[::ffff:${low}]`,
    `[::FFFF:${low.toUpperCase()}]`,
    `[0:0:0:0:0:ffff:${low}]`,
    `[0000:0000:0000:0000:0000:ffff:${hex((a << 8) | b, 4)}:${hex((c << 8) | d, 4)}]`,
    `[::${address}]`,
    `[64:ff9b::${low}]`,
    `[64:ff9b::${address}]`,
    `[64:ff9b:1::${low}]`,
    `[2002:${low}::]`,
    `[2002:${low}::1]`,
    `[2001:0:${low}::1]`,
    `[2001:0:4136:e378:8000:63bf:${hex(0xffff ^ ((a << 8) | b))}:${hex(0xffff ^ ((c << 8) | d))}]`,
    `[fe80::5efe:${low}]`,
  ]
}

test('no spelling of a private, loopback, link-local or metadata address is reached, or even dialled', async (t) => {
  const { port, dialled } = await opened
  const sender = openSender(t, [])
  const addresses =
    `127.0.0.1 127.255.255.254 0.0.0.0 10.0.0.1 10.255.255.255 172.16.0.1 172.31.255.255 192.168.0.1 169.254.169.254
    169.254.170.2 100.64.0.1 100.100.100.200 168.63.129.16 192.0.0.192 192.0.2.1 198.18.0.1 198.51.100.7 203.0.113.9 224.0.0.251
    240.0.0.1 255.255.255.255`.split(/\s+/)
  const missed: string[] = []
  for (const spelling of addresses.flatMap(spellingsOf))
    for (const target of [`https://${spelling}:${port}/`, `http://${spelling}:${port}/`, `https://${spelling}/`]) {
      const fate = await fateOf(sender, target)
      if (fate !== 'refused' || sender.refusalOf(target) === null) missed.push(`${target} ${fate}`)
    }
  t.strictSame(missed, [])
  t.equal(dialled(), 0)
})

test('the edges of blocked networks are where they ought to be', async (t) => {
  const sender = openSender(t, [])
  const open =
    `1.1.1.1 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.1 169.253.255.255 169.255.0.0
    172.15.255.255 172.32.0.0 192.167.255.255 192.169.0.0 198.17.255.255 198.20.0.0 223.255.255.255 [2606:4700::1111]
    [2a00:1450::1] [2001:4860::8888] [64:ff9b::808:808] [::ffff:8.8.8.8]`.split(/\s+/)
  for (const host of open) t.equal(sender.refusalOf(`https://${host}/`), null, host)
  for (const host of open) t.ok(sender.refusalOf(`http://${host}/`), `${host} without TLS`)
  const closed =
    `[::] [::1] [::2] [fe80::1] [febf::1] [fec0::1] [fc00::1] [fdff::1] [ff02::1] [100::1] [2001:db8::1] [2001::1] [2001:10::1]
    [2001:20::1] [2002::1] [3fff::1] [4000::1] [5f00::1] [fd00:ec2::254] [64:ff9b:1::1] [::ffff:0:127.0.0.1]`.split(
      /\s+/,
    )
  for (const host of closed) t.ok(sender.refusalOf(`https://${host}/`), host)
})

test('seeded: an address is refused exactly when its IPv4-mapped and NAT64 forms are', async (t) => {
  const random = createRandom(20_261_121)
  const sender = openSender(t, [])
  const unequal: string[] = []
  for (let count = 0; count < 3_000; count += 1) {
    const bytes = [0, 0, 0, 0].map(() => random.below(256))
    const refused = (host: string) => sender.refusalOf(`https://${host}/`) !== null
    const address = bytes.join('.')
    if (refused(address) !== refused(`[::ffff:${address}]`) || refused(address) !== refused(`[64:ff9b::${address}]`))
      unequal.push(address)
  }
  t.strictSame(unequal, [])
})

test('zone ids, credentials, other schemes and what is no URL are refused', async (t) => {
  const { port, dialled } = await opened
  const sender = openSender(t, ['127.0.0.1', '::1', 'fe80::/10'])
  for (const url of [
    `https://[fe80::1%25eth0]:${port}/`,
    `https://[fe80::1%eth0]:${port}/`,
    `http://user@127.0.0.1:${port}/`,
    `http://user:password@127.0.0.1:${port}/`,
    `http://:password@127.0.0.1:${port}/`,
    `ftp://127.0.0.1:${port}/`,
    `gopher://127.0.0.1:${port}/`,
    `ws://127.0.0.1:${port}/`,
    'file:///etc/passwd',
    'data:text/plain,x',
    'javascript:0',
    `//127.0.0.1:${port}/`,
    'https://',
    'https://256.256.256.256/',
    'https://1.2.3.4.5/',
    'https://[::1/',
    `https://127.0.0.1:99999/`,
  ])
    t.equal(await fateOf(sender, url), 'refused', url)
  t.equal(dialled(), 0)
})

test('what follows an @, a # or a backslash is read as the sender dials it', async (t) => {
  const sender = openSender(t, [], async (hostname) => (hostname === 'public.test' ? ['10.0.0.1'] : ['10.0.0.2']))
  for (const url of [
    'https://8.8.8.8@127.0.0.1/',
    'https://127.0.0.1#@public.test/',
    'https://127.0.0.1\\@public.test/',
    'https:127.0.0.1/',
    'https:\\\\127.0.0.1/',
    'https://127.0.0.1\t/',
    'https://127.0\n.0.1/',
    ' https://127.0.0.1/ ',
    'https://public.test/',
    'https://PUBLIC.test./',
  ])
    t.equal(await fateOf(sender, url), 'refused', JSON.stringify(url))
})

test('a name is refused when one of its addresses is, whatever its place and family', async (t) => {
  const { port, dialled } = await opened
  const bad = ['127.0.0.1', '::1', '10.1.2.3', '169.254.169.254', 'fd00:ec2::254', '::ffff:10.0.0.1', '64:ff9b::7f00:1']
  const more = ['2002:7f00:1::', '2001:0:7f00:1::1', 'fe80::1%lo', 'fe80::1', '0.0.0.0', '::', 'not an address', '']
  const good = ['8.8.8.8', '2606:4700::1111']
  for (const address of [...bad, ...more])
    for (const answer of [[address], [address, ...good], [...good, address], ['8.8.8.8', address, '1.1.1.1']]) {
      const sender = openSender(t, [], async () => answer)
      t.equal(await fateOf(sender, `https://name.test:${port}/`), 'refused', answer.join(' '))
      await sender.close()
    }
  t.equal(dialled(), 0)
})

test('a name that changes between two resolutions is judged at each, and only what was judged is dialled', async (t) => {
  const receiver = await openFakeWebhookReceiver(t)
  const answers = [['127.0.0.1'], ['127.0.0.1'], ['10.0.0.1'], ['10.0.0.1']]
  let asked = 0
  const sender = openSender(t, ['127.0.0.1'], async () => answers[asked++] ?? ['10.0.0.1'])
  const url = receiver.url('/').replace('127.0.0.1', 'rebinding.test')
  // The receiver trusts nobody here: 401 is an answer, so it was reached. Its connections are not kept.
  t.equal(await fateOf(sender, url), 'answered 401')
  await sender.close()
  const later = openSender(t, ['127.0.0.1'], async () => answers[asked++] ?? ['10.0.0.1'])
  t.equal(await fateOf(later, url), 'refused')
  t.equal(asked, 4, 'one resolution for each connection')
})

test('redirects lead nowhere, also not to a private address', async (t) => {
  const { port, dialled } = await opened
  const receiver = await openFakeWebhookReceiver(t)
  receiver.trust('/', secret)
  const sender = openSender(t, ['127.0.0.1'])
  const locations = [
    `http://127.0.0.1:${port}/`,
    'https://169.254.169.254/',
    'http://[::1]/',
    receiver.url('/elsewhere'),
  ]
  for (const location of locations)
    for (const status of [301, 302, 303, 307, 308]) {
      receiver.script('/', [{ status, headers: { location } }])
      const question = { type: 'call.tool_call', url: receiver.url('/'), secret, headers: {}, timeout: 5_000 } as const
      const answer = await askHook({ sender, now: () => 0, newId }, { ...question, accountId: 'a', data: {} })
      t.match(answer, { kind: 'failed', status }, `${status} ${location}`)
    }
  t.equal(dialled(), 0)
  t.ok(receiver.deliveries.every(({ path }) => path === '/'))
})

test('an entry of WEBHOOK_ALLOW_HOSTS opens what it names and nothing beside it', async (t) => {
  const receiver = await openFakeWebhookReceiver(t)
  const resolve: Resolve = async (hostname) => (hostname.startsWith('inside') ? ['127.0.0.1'] : ['10.0.0.1'])
  const to = (host: string) => receiver.url('/').replace('127.0.0.1', host)
  const reached = 'answered 401'
  const matrix = [
    ['127.0.0.1', to('127.0.0.1'), reached],
    ['127.0.0.1', to('2130706433'), reached],
    ['127.0.0.1', to('[::ffff:127.0.0.1]'), 'transport, but the hook transport'],
    ['127.0.0.1', to('inside.test'), reached],
    ['127.0.0.1', to('127.0.0.2'), 'refused'],
    ['127.0.0.1', to('10.0.0.1'), 'refused'],
    ['127.0.0.1', to('elsewhere.test'), 'refused'],
    ['127.0.0.0/8', to('127.0.0.1'), reached],
    ['127.0.0.0/31', to('127.0.0.2'), 'refused'],
    ['::ffff:127.0.0.1', to('127.0.0.1'), reached],
    ['localhost', to('localhost'), reached],
    ['LOCALHOST', to('LocalHost'), reached],
    ['localhost', to('127.0.0.1'), 'refused'],
    ['localhost', to('sub.localhost'), 'refused'],
    ['localhost', to('localhost.'), 'refused'],
    ['inside.test', to('other.inside.test'), 'refused'],
    ['10.0.0.0/8', to('inside.test'), 'refused'],
  ] as const
  for (const [entry, url, expected] of matrix) {
    const sender = openSender(t, [entry], resolve)
    const fate = await fateOf(sender, url)
    if (expected.startsWith('transport')) t.not(fate, 'refused', `${entry} ${url}`)
    else t.equal(fate, expected, `${entry} ${url}`)
    await sender.close()
  }
})
