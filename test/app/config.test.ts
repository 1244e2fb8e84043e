/** What a process begins with: settings, each with a default, a wrong one named before anything starts; and ids. */
import { readFile } from 'node:fs/promises'
import { test } from 'tap'
import { version } from 'uuid'
import { readConfig, settingNames } from '../../app/config.ts'
import { createNewId } from '../../app/new-id.ts'

test('without any setting everything is embedded, on loopback, with demo and self-test', async (t) => {
  const config = readConfig({})
  t.match(config, { host: '127.0.0.1', port: 8080, databaseUrl: null, natsUrl: null, demo: true, selfTest: true })
  t.same(config.webhookAllowHosts, ['127.0.0.1', 'localhost', '::1'])
  t.ok(config.sip?.allowHosts.includes('127.0.0.0/8') && config.sip.allowHosts.includes('192.168.0.0/16'))
})

test('demo, self-test and webhooks to this machine end where the service is not for this machine alone', async (t) => {
  for (const environment of [{ HOST: '0.0.0.0' }, { DATABASE_URL: 'postgres://db.example.com/parley' }]) {
    const config = readConfig(environment)
    t.match(config, { demo: false, selfTest: false })
    t.same(config.webhookAllowHosts, [])
    t.same(config.sip?.allowHosts, [])
  }
})

test('a wrong setting is refused with its name', async (t) => {
  const wrong: Record<string, string> = {
    PORT: '70000',
    PUBLIC_URL: 'calls.example.com',
    HTTP_DRIVER: 'apache',
    DATABASE_URL: 'mysql://db/parley',
    NATS_URL: 'http://127.0.0.1',
    APP_SECRET: 'short',
    MEDIA_ADDRESS: 'localhost',
    MEDIA_PORTS: '50000-40000',
    SELF_TEST: 'maybe',
    SHUTDOWN_GRACE_SECONDS: '-1',
    LOG_LEVEL: 'loud',
    TLS_CERT: '/nowhere/cert.pem',
    TURN_SECRET: 'a-long-secret',
    SIP: 'maybe',
    SIP_ADDRESS: 'localhost',
    SIP_PUBLIC_ADDRESS: 'sip.example.com',
    SIP_PORT: '-1',
    SIP_TLS_PORT: 'x',
    SIP_TLS_CERT: '/nowhere/cert.pem',
    SIP_TLS_CA: '/nowhere/ca.pem',
    SIP_TLS_VERIFY: 'perhaps',
    SIP_MEDIA_PORTS: '80-90',
    SIP_ALLOW_HOSTS: '10.0.0.0/8,http://pbx.example.com',
    DRACHTIO_URL: 'tcp://127.0.0.1:9022',
    SMTP_URL: 'http://mail.example.com',
    EMAIL_FROM: 'agent@example.com',
    RATE_LIMIT_PER_ACCOUNT: '-1',
    RATE_LIMIT_PER_ADDRESS: 'many',
    DELIVERY_RETENTION_DAYS: '0',
  }
  for (const [name, value] of Object.entries(wrong))
    t.throws(() => readConfig({ [name]: value }), new RegExp(name), name)
  t.throws(() => readConfig({ PORT: 'x', LOG_LEVEL: 'x' }), /PORT: .*\n.*LOG_LEVEL: /, 'all of them at once')
  t.throws(() => readConfig({ TLS_CERT: '/nowhere', TLS_KEY: '/nowhere' }), /TLS_CERT: the file/)
})

test('an empty value is no value', async (t) => {
  t.match(readConfig({ DATABASE_URL: '', APP_SECRET: '', PUBLIC_URL: '' }), {
    databaseUrl: null,
    appSecret: null,
    publicUrl: null,
  })
})

/** Settings that go together. */
const partnersOf: Readonly<Record<string, Record<string, string>>> = {
  TURN_URLS: { TURN_SECRET: 'long-enough' },
  TURN_SECRET: { TURN_URLS: 'turn:a:1' },
  SMTP_URL: { EMAIL_FROM: 'agent@example.com' },
  EMAIL_FROM: { SMTP_URL: 'smtp://127.0.0.1' },
}

test('.env.example lists every setting, and no other', async (t) => {
  const text = await readFile(new URL('../../.env.example', import.meta.url), 'utf8')
  const listed = [...text.matchAll(/^#?([A-Z_]+)=/gm)].map(([, name]) => name)
  t.same(new Set(listed), new Set(settingNames))
  for (const [, name = '', value = ''] of text.matchAll(/^#([A-Z_]+)=(\S+)$/gm))
    if (!name.startsWith('TLS')) t.doesNotThrow(() => readConfig({ ...partnersOf[name], [name]: value }), name)
})

test('ids are UUIDv7, different, and in the order of their making, also when the clock stands still or is set back', (t) => {
  const start = Date.UTC(2026, 10, 21)
  let now = start
  const newId = createNewId(() => now)
  const ids: string[] = []
  for (let count = 0; count < 20_000; count++) {
    if (count % 1000 === 0) now += count === 10_000 ? -60_000 : 7
    ids.push(newId())
  }
  t.equal(new Set(ids).size, ids.length)
  t.strictSame(ids.toSorted(), ids)
  t.ok(ids.every((id) => version(id) === 7 && /^.{19}[89ab]/.test(id)))
  const timeOf = (id = '') => Number.parseInt(id.replace('-', '').slice(0, 12), 16)
  t.equal(timeOf(ids[0]), start + 7)
  t.equal(timeOf(ids[9_999]), start + 70)
  t.equal(timeOf(ids[10_000]), start + 70, 'never back')
  const others = Array.from(
    { length: 1000 },
    createNewId(() => now),
  )
  t.equal(new Set(others.map((id) => id.slice(24))).size, 1000, 'the rest is random')
  t.end()
})
