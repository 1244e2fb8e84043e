/** The whole service against addresses that fail: telephones, keys and tokens ask one guard, and the operator lists and lifts its bans. */
import dgram from 'node:dgram'
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { test } from 'tap'
import { WebSocket } from 'ws'
import { createHearingEngine } from '../fake/hearing-engine.ts'
import { until } from '../scenes/in-time.ts'
import { openPhoneStage, type PhoneStage } from '../scenes/phone-stage.ts'
import { runCommand } from '../../tools/admin/run-command.ts'

/** Of this machine, and of no trunk. */
const stranger = '127.0.0.2'

test('an address that fails is not heard any more, and who belongs here is', { timeout: 100_000 }, async (t) => {
  const scene = await openPhoneStage(t, createHearingEngine({ tone: null }), { lines: [{}] })
  const [scanner, carrier] = await Promise.all([stranger, '127.0.0.1'].map((address) => openAsker(t, scene, address)))
  if (!scanner || !carrier) throw new Error('sockets are missing')
  const admin = adminOf(scene)

  await t.test(
    'an unknown SIP peer is answered five times, and banned once, as the log and the operator see',
    async (t) => {
      for (let count = 0; count < 40; count += 1) scanner.ask(count % 2 === 0 ? 'OPTIONS' : 'REGISTER')
      await until(async () =>
        (await admin('bans')).includes(`${stranger}  unknown_peer  UDP only, not its calls  since`),
      )
      t.equal(scanner.answers(), 5)
      const bans = scene.log.lines.filter(({ message }) => message === 'an address is banned')
      t.match(bans, [{ level: 'warn', fields: { failure: 'unknown_peer', personal: { address: stranger } } }])
      t.equal(bans.length, 1)
      for (let count = 0; count < 40; count += 1) carrier.ask('OPTIONS')
      await until(() => carrier.answers() === 40, carrier.answers)
    },
  )

  await t.test('the operator lifts the ban, and the address is heard again', async (t) => {
    t.match(await admin('bans', 'lift', stranger), /^lifted/)
    await until(async () => {
      scanner.ask('OPTIONS')
      return scanner.answers() > 5
    })
    t.ok(scanner.answers() > 5)
  })

  await t.test('wrong keys are told 120 times, then 429; the right one is answered', async (t) => {
    const statuses = new Map<number, number>()
    for (let count = 0; count < 130; count += 1) {
      const headers = { 'x-api-key': `vk_${String(count).padStart(43, '0')}` }
      const { status } = await fetch(new URL('/v1/accounts/current', scene.service.url), { headers })
      statuses.set(status, (statuses.get(status) ?? 0) + 1)
    }
    t.same(
      [...statuses],
      [
        [401, 120],
        [429, 10],
      ],
    )
    t.match(await scene.rest('GET', '/workers'), Array)
  })

  await t.test('made-up tokens of the signaling socket add to it, until the address is banned', async (t) => {
    const signaling = `${scene.service.url.replace('http', 'ws')}/v1/signaling`
    for (let count = 0; count < 70; count += 1) {
      const socket = new WebSocket(`${signaling}?token=made-up-${count}`)
      socket.on('error', () => undefined)
      const [, response] = (await once(socket, 'unexpected-response')) as [unknown, IncomingMessage]
      socket.terminate()
      t.equal(response.statusCode, 429)
      t.match(response.headers, {
        'retry-after': '5',
        ratelimit: '"default";r=0;t=5',
        'ratelimit-policy': /^"default";q=\d+;w=60$/,
      })
    }
    await until(async () => (await admin('bans')).includes('127.0.0.1  wrong_token  proven'))
    t.match(await scene.rest('GET', '/workers'), Array, 'the right key is answered')
    carrier.ask('OPTIONS')
    await until(() => carrier.answers() === 41, carrier.answers)
  })
})

type Teardown = { teardown(close: () => void): unknown }

async function openAsker(t: Teardown, { port }: PhoneStage, address: string) {
  const socket = dgram.createSocket('udp4')
  socket.bind(0, address)
  await once(socket, 'listening')
  t.teardown(() => socket.close())
  const answered = new Set<string>()
  socket.on('message', (bytes) => answered.add(/^Call-ID: (\S+)/im.exec(String(bytes))?.[1] ?? ''))
  const from = `${address}:${socket.address().port}`
  let asked = 0
  return {
    answers: () => answered.size,
    ask(method: string) {
      asked += 1
      const id = `${socket.address().port}-${asked}`
      const lines = [
        `${method} sip:127.0.0.1 SIP/2.0`,
        `Via: SIP/2.0/UDP ${from};rport;branch=z9hG4bK${id}`,
        'Max-Forwards: 70',
        `From: <sip:scan@${from}>;tag=${id}`,
        'To: <sip:127.0.0.1>',
        `Call-ID: ${id}`,
        `CSeq: 1 ${method}`,
        `Contact: <sip:scan@${from}>`,
        'Content-Length: 0',
      ]
      socket.send(`${lines.join('\r\n')}\r\n\r\n`, port, '127.0.0.1')
    },
  }
}

/** What `npm run admin -- …` prints; it joins the database of the service. */
function adminOf({ service }: PhoneStage) {
  const openBox = () => Promise.resolve(service.box)
  return async (...args: string[]): Promise<string> => {
    const lines: string[] = []
    const print = (text: string): void => void lines.push(text)
    await runCommand(args, { print, onDatabase: (use) => use({ sql: service.sql, openBox, print }) })
    return lines.join('\n')
  }
}
