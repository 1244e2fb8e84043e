/** What a process begins with: settings, each with a default, a wrong one named before anything starts; and ids. */
import { execFile } from 'node:child_process'
import { readFile, stat, writeFile } from 'node:fs/promises'
import path from 'node:path'
import process from 'node:process'
import { promisify } from 'node:util'
import { test } from 'tap'
import { version } from 'uuid'
import { presetVariable, readConfig, settingNames } from '../../app/config.ts'
import { WrongSettings } from '../../app/config/setting.ts'
import { requireDriver } from '../../app/http-driver.ts'
import { createNewId } from '../../app/new-id.ts'
import { told, withoutSecrets } from '../../app/told-failure.ts'
import { makeFolder } from '../../store/make-folder.ts'
import { postgresFailure } from '../../store/postgres-failure.ts'
import { createFolder } from '../scenes/folder.ts'
import { fakeTls } from '../scenes/tls.ts'

test('without any setting everything is embedded, on loopback, with demo and self-test', async (t) => {
  const config = readConfig({})
  t.match(config, { host: '127.0.0.1', port: 8080, databaseUrl: null, natsUrl: null, demo: true, selfTest: true })
  t.same(config.webhookAllowHosts, ['127.0.0.1', 'localhost', '::1'])
  t.ok(config.sip?.allowHosts.includes('127.0.0.0/8') && config.sip.allowHosts.includes('192.168.0.0/16'))
})

test('demo, self-test and webhooks to this machine end where the service is not for this machine alone', async (t) => {
  const others = ['0.0.0.0', '::', '127.example.com', '192.0.2.1'].map((HOST) => ({ HOST }))
  for (const environment of [...others, { DATABASE_URL: 'postgres://db.example.com/parley' }]) {
    const config = readConfig(environment)
    t.match(config, { demo: false, selfTest: false })
    t.same(config.webhookAllowHosts, [])
    t.same(config.sip?.allowHosts, [])
  }
})

test('without a setting of its own the sound of browsers is on every interface as long as HTTP is on loopback', async (t) => {
  const sip = { address: '127.0.0.1', publicAddress: null }
  t.match(readConfig({}), { host: '127.0.0.1', media: { address: '127.0.0.1', offersInterfaces: true }, sip })
  for (const HOST of ['localhost', '::1', '127.0.0.1'])
    t.match(readConfig({ HOST, DATABASE_URL: 'postgres://db/parley' }).media, { offersInterfaces: true })
  for (const address of ['127.0.0.1', '0.0.0.0', '192.0.2.1'])
    t.match(readConfig({ MEDIA_ADDRESS: address }).media, { address, offersInterfaces: false })
  t.match(readConfig({ HOST: '192.0.2.1' }).media, { address: '192.0.2.1', offersInterfaces: false })
})

test('an address may be set in any spelling', async (t) => {
  const spelled = { HOST: '0:0:0:0:0:0:0:1', MEDIA_PUBLIC_ADDRESS: '2001:DB8:0::7', SIP_ADDRESS: '::ffff:127.0.0.1' }
  t.match(readConfig(spelled), {
    demo: true,
    media: { address: '::1', publicAddress: '2001:db8::7', opusComplexity: 1 },
    sip: { address: '127.0.0.1', publicAddress: '2001:db8::7' },
  })
})

test('a variable for a library is set where the operator has not', async (t) => {
  const name = 'A_LIBRARY_LOOKS_AT_THIS'
  t.teardown(() => void delete process.env[name])
  presetVariable(name, 'ours')
  t.equal(process.env[name], 'ours')
  presetVariable(name, 'again')
  t.equal(process.env[name], 'ours', 'what is set stays')
})

test('the listener is node’s unless another driver is asked for, and one that does not load is told in a sentence with its setting', async (t) => {
  const driverOf = (settings: Record<string, string>) => readConfig(settings).httpDriver
  for (const HTTP_DRIVER of ['auto', 'node']) t.equal(driverOf({ HTTP_DRIVER }), 'node')
  t.equal(driverOf({}), 'node')
  t.equal(driverOf({ PUBLIC_URL: 'https://calls.example.com', HTTP_DRIVER: 'uws', APP_SECRET: 'x'.repeat(32) }), 'uws')
  const failing = async () => {
    throw new Error('This version supports only node 24.\n\nError: libc.so.6: version `GLIBC_2.38´ not found')
  }
  await requireDriver('node', failing)
  await requireDriver('uws', async () => undefined)
  const refused = await requireDriver('uws', failing).catch((error: unknown) => error)
  t.match(refused, { name: 'WrongSettings' })
  t.match(
    (refused as Error).message,
    /^HTTP_DRIVER=uws: uWebSockets\.js does not load here \(libc\.so\.6: version .GLIBC_2\.38. not found\); [^\n]* or set HTTP_DRIVER=node$/,
  )
})

test('a wrong setting is refused with its name', async (t) => {
  const wrong: Record<string, string> = {
    OPUS_COMPLEXITY: '11',
    PORT: '70000',
    PUBLIC_URL: 'calls.example.com',
    HTTP_DRIVER: 'apache',
    DATABASE_URL: 'mysql://db/parley',
    RECORDINGS_URL: 'https://storage.example',
    RECORDINGS_REGION: 'somewhere else',
    RECORDINGS_ACCESS_KEY_ID: 'two words',
    RECORDINGS_SECRET_ACCESS_KEY: 'two words',
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
    MAX_CONNECTIONS: '0',
    MAX_CONNECTIONS_PER_ADDRESS: '1.5',
    MAX_WEB_CALLS_PER_ADDRESS: 'all',
    MAX_BODY_MEMORY_MB: '1',
    SIP_MAX_CONNECTIONS: '-1',
    SIP_MAX_CONNECTIONS_PER_ADDRESS: 'some',
    DELIVERY_RETENTION_DAYS: '0',
    OPENAI_API_KEY: 'two words',
    OPENAI_REALTIME_URL: 'https://api.openai.com/v1/realtime',
    GEMINI_API_KEY: 'schlüssel',
    GEMINI_LIVE_URL: 'generativelanguage.googleapis.com',
    CASCADE_URL: 'ws://127.0.0.1:11434',
    CASCADE_CHAT_URL: 'chat',
    CASCADE_TRANSCRIPTION_URL: 'ftp://127.0.0.1',
    CASCADE_SPEECH_URL: '/v1',
    CASCADE_API_KEY: 'a\nb',
    CASCADE_SPEECH_RATE: '44100',
    CASCADE_TRANSCRIPTION_STREAM: 'always',
    EMBEDDED_HEARING: 'telepathy',
  }
  for (const [name, value] of Object.entries(wrong))
    t.throws(() => readConfig({ [name]: value }), new RegExp(name), name)
  t.throws(() => readConfig({ PORT: 'x', LOG_LEVEL: 'x' }), /PORT: .*\n.*LOG_LEVEL: /, 'all of them at once')
  t.throws(() => readConfig({ TLS_CERT: '/nowhere', TLS_KEY: '/nowhere' }), /TLS_CERT: the file/)
})

/** What no machine has is found when it is used: test/tools/start.test.ts. */
const takenAsTheyAre = ['HOST', 'DATA_DIR']

test('every setting with an impossible value is refused in one line that names it', async (t) => {
  const impossible = ['a b', '\u0000', '☎']
  for (const name of settingNames.filter((each) => !takenAsTheyAre.includes(each)))
    for (const value of impossible)
      t.throws(
        () => readConfig({ [name]: value }),
        { name: 'WrongSettings', message: new RegExp(`\\b${name}\\b.*$`) },
        name,
      )
  const [one] = await Promise.allSettled([Promise.try(() => readConfig({ WEBHOOK_ALLOW_HOSTS: 'a b' }))])
  t.match(one, { reason: { message: /^The setting WEBHOOK_ALLOW_HOSTS: must be host names, [^\n]*$/ } })
  t.throws(() => readConfig({ TURN_URLS: 'turn.example.com', TURN_SECRET: 'long-enough' }), /TURN_URLS: must be/)
  t.throws(() => readConfig({ DRACHTIO_URL: 'tcp://:%zz@127.0.0.1' }), /DRACHTIO_URL must read/)
})

test('files that are no certificates, or not a certificate and its key, are refused by their names', async (t) => {
  const folder = await createFolder(t)
  const [text, cert, key] = ['text', 'cert.pem', 'key.pem'].map((name) => path.join(folder, name)) as [
    string,
    string,
    string,
  ]
  await Promise.all([writeFile(text, 'hello'), writeFile(cert, fakeTls.cert), writeFile(key, fakeTls.key)])
  t.ok(readConfig({ TLS_CERT: cert, TLS_KEY: key, SIP_TLS_CA: cert }).tls)
  t.throws(
    () => readConfig({ TLS_CERT: text, TLS_KEY: key }),
    /^[^\n]*TLS_CERT and TLS_KEY: the files are not a certificate/,
  )
  t.throws(
    () => readConfig({ SIP_TLS_CERT: cert, SIP_TLS_KEY: cert }),
    /SIP_TLS_CERT and SIP_TLS_KEY: the files are not/,
  )
  t.throws(() => readConfig({ SIP_TLS_CA: text }), /SIP_TLS_CA: the file .* is no certificate in PEM/)
})

test('what a start meets is told by its reason, and no password with it', async (t) => {
  const refused = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' })
  const failures: readonly (readonly [unknown, string])[] = [
    [refused, 'nobody listens there'],
    [new Error('did not answer in time', { cause: refused }), 'nobody listens there'],
    [new AggregateError([refused]), 'nobody listens there'],
    [Object.assign(new Error('x'), { code: '28P01' }), 'the password is wrong; mend it'],
    [postgresFailure('It fails.', 'FATAL:  could not write lock file: No space left on device'), 'the disk is full'],
    [postgresFailure('It fails.', 'FATAL:  out of luck\n'), 'It fails. It said: FATAL:  out of luck'],
    [new Error('first line\n  second line'), 'first line second line'],
    ['thrown', 'thrown'],
  ]
  for (const [failure, reason] of failures)
    await t.rejects(
      told('NATS_URL: it fails', () => Promise.reject(failure), { '28P01': 'mend it' }),
      { message: `NATS_URL: it fails: ${reason}` },
    )
  const named = new WrongSettings('HTTP_DRIVER: it does not load')
  await t.rejects(
    told('PORT', () => Promise.reject(named)),
    { message: named.message },
  )
  for (const secret of ['user:p%40ss', 'user:p@ss', 'user'])
    t.equal(withoutSecrets(`postgres://${secret}@db.example.com/x`), 'postgres://db.example.com/x')
  t.equal(withoutSecrets('nats://a:b@one:4222,nats://c:d@two:4222'), 'nats://one:4222,nats://two:4222')
})

test('a folder is made with those above it, and where none can be made that is said, and soon', async (t) => {
  const folder = await createFolder(t)
  const deep = path.join(folder, 'a/b/c')
  await Promise.all([makeFolder(deep), makeFolder(deep)])
  t.equal((await stat(deep)).mode & 0o777, 0o700)
  await writeFile(path.join(folder, 'file'), '')
  await t.rejects(makeFolder(path.join(folder, 'file')), { code: 'EEXIST' })
  await t.rejects(makeFolder(path.join(folder, 'file/below')), { code: 'ENOTDIR' })
  await t.rejects(makeFolder('/proc/nowhere/at/all'), { code: 'ENOENT' })
})

test('an empty value is no value', async (t) => {
  t.match(readConfig({ DATABASE_URL: '', APP_SECRET: '', PUBLIC_URL: '' }), {
    databaseUrl: null,
    appSecret: null,
    publicUrl: null,
  })
  const none = Object.fromEntries(settingNames.map((name) => [name, '']))
  t.same(readConfig(none), readConfig({}), 'and a number is not 0 by it, which would be no bans and no limits')
  t.match(readConfig({ BAN_AFTER: ' ', SHUTDOWN_GRACE_SECONDS: '0' }), { bans: { banAfter: 10 }, shutdownGrace: 0 })
})

test('the bus has one address, or those of a cluster with commas between', async (t) => {
  const three = 'nats://nats-1:4222,nats://nats-2:4222, tls://nats-3:4222'
  for (const NATS_URL of ['nats://127.0.0.1:4222', three]) t.equal(readConfig({ NATS_URL }).natsUrl, NATS_URL)
  for (const NATS_URL of ['http://a', 'nats://a,http://b', 'nats://a,', ',nats://a'])
    t.throws(() => readConfig({ NATS_URL }), /NATS_URL: must be a URL that begins with nats/, NATS_URL)
})

test('any setting may be the content of a file; without the file, or beside the value itself, the start ends with its name', async (t) => {
  const folder = await createFolder(t)
  const file = path.join(folder, 'secret')
  const secret = 'a secret of more than thirty-two characters'
  await writeFile(file, `${secret}\n`)
  t.equal(readConfig({ APP_SECRET_FILE: file }).appSecret, secret, 'without the newline that editors add')
  t.equal(readConfig({ APP_SECRET: '', APP_SECRET_FILE: file }).appSecret, secret)
  t.equal(readConfig({ APP_SECRET: secret, APP_SECRET_FILE: '' }).appSecret, secret)
  await writeFile(file, 'short')
  t.throws(() => readConfig({ APP_SECRET_FILE: file }), { message: /APP_SECRET: must have 32 characters/ })
  const both = { APP_SECRET: secret, APP_SECRET_FILE: file }
  t.throws(
    () => readConfig(both),
    new WrongSettings('APP_SECRET and APP_SECRET_FILE: set one of them, they are the same setting'),
  )
  t.throws(() => readConfig({ NATS_URL_FILE: `${file}.not` }), {
    message: /^NATS_URL_FILE: the file .* cannot be read/,
  })
})

test('PUBLIC_URL is taken as clients write it: they compare it letter by letter', async (t) => {
  for (const [given, taken] of [
    ['https://calls.example.com', 'https://calls.example.com'],
    ['https://Calls.Example.com:443/', 'https://calls.example.com'],
    ['http://10.0.0.5:80', 'http://10.0.0.5'],
    ['https://calls.example.com:8443/voice/', 'https://calls.example.com:8443/voice'],
  ] as const)
    t.equal(readConfig({ PUBLIC_URL: given, APP_SECRET: 'x'.repeat(32) }).publicUrl, taken)
})

/** Settings that go together. */
const partnersOf: Readonly<Record<string, Record<string, string>>> = {
  METRICS_HOST: { METRICS_PORT: '9464' },
  TURN_URLS: { TURN_SECRET: 'long-enough' },
  TURN_SECRET: { TURN_URLS: 'turn:a:1' },
  SMTP_URL: { EMAIL_FROM: 'agent@example.com' },
  EMAIL_FROM: { SMTP_URL: 'smtp://127.0.0.1' },
  OPENAI_REALTIME_URL: { OPENAI_API_KEY: 'k' },
  OPENAI_REALTIME_MODEL: { OPENAI_API_KEY: 'k' },
  OPENAI_REALTIME_VOICE: { OPENAI_API_KEY: 'k' },
  OPENAI_TRANSCRIPTION_MODEL: { OPENAI_API_KEY: 'k' },
  OPENAI_REALTIME_REASONING_EFFORT: { OPENAI_API_KEY: 'k' },
  OPENAI_REALTIME_TURN_DETECTION: { OPENAI_API_KEY: 'k' },
  OPENAI_REALTIME_EAGERNESS: { OPENAI_API_KEY: 'k', OPENAI_REALTIME_TURN_DETECTION: 'semantic_vad' },
  GEMINI_LIVE_URL: { GEMINI_API_KEY: 'k' },
  GEMINI_LIVE_MODEL: { GEMINI_API_KEY: 'k' },
  GEMINI_LIVE_VOICE: { GEMINI_API_KEY: 'k' },
  RECORDINGS_URL: { RECORDINGS_ACCESS_KEY_ID: 'k', RECORDINGS_SECRET_ACCESS_KEY: 's' },
  RECORDINGS_REGION: {
    RECORDINGS_URL: 'http://127.0.0.1/bucket',
    RECORDINGS_ACCESS_KEY_ID: 'k',
    RECORDINGS_SECRET_ACCESS_KEY: 's',
  },
  CASCADE_URL: { CASCADE_CHAT_MODEL: 'm' },
  CASCADE_CHAT_MODEL: { CASCADE_URL: 'http://127.0.0.1/v1' },
  CASCADE_CHAT_URL: { CASCADE_URL: 'http://127.0.0.1/v1', CASCADE_CHAT_MODEL: 'm' },
  CASCADE_TRANSCRIPTION_MODEL: { CASCADE_URL: 'http://127.0.0.1/v1', CASCADE_CHAT_MODEL: 'm' },
  CASCADE_SPEECH_MODEL: { CASCADE_URL: 'http://127.0.0.1/v1', CASCADE_CHAT_MODEL: 'm' },
  CASCADE_VOICE: { CASCADE_URL: 'http://127.0.0.1/v1', CASCADE_CHAT_MODEL: 'm' },
  CASCADE_SPEECH_RATE: { CASCADE_URL: 'http://127.0.0.1/v1', CASCADE_CHAT_MODEL: 'm' },
  EXTRACTION_URL: { EXTRACTION_MODEL: 'm' },
  EXTRACTION_MODEL: { EXTRACTION_URL: 'http://127.0.0.1/v1' },
  EXTRACTION_KEY: { EXTRACTION_URL: 'http://127.0.0.1/v1', EXTRACTION_MODEL: 'm' },
  EXTRACTION_TIMEOUT_SECONDS: { EXTRACTION_URL: 'http://127.0.0.1/v1', EXTRACTION_MODEL: 'm' },
}

test('a language model reads finished talks where its address and its name are set, both or neither', (t) => {
  t.equal(readConfig({}).extraction, null)
  const EXTRACTION_URL = 'http://127.0.0.1:11434/v1/'
  t.same(readConfig({ EXTRACTION_URL, EXTRACTION_MODEL: 'small' }).extraction, {
    address: { url: 'http://127.0.0.1:11434/v1', model: 'small', apiKey: null },
    timeout: 30_000,
  })
  for (const [settings, told] of [
    [{ EXTRACTION_URL }, /EXTRACTION_URL and EXTRACTION_MODEL go together/],
    [{ EXTRACTION_KEY: 'k' }, /EXTRACTION_KEY needs EXTRACTION_URL/],
    [{ EXTRACTION_URL, EXTRACTION_MODEL: 'm', EXTRACTION_TIMEOUT_SECONDS: '600' }, /EXTRACTION_TIMEOUT_SECONDS: /],
  ] as const)
    t.throws(() => readConfig(settings), told)
  t.end()
})

test('without a key there is the embedded engine alone; a key is all that a provider needs', async (t) => {
  t.strictSame(readConfig({}).voice, { openai: null, gemini: null, cascade: null, embedded: { hearing: 'fsg' } })
  const { openai, gemini } = readConfig({ OPENAI_API_KEY: 'a', GEMINI_API_KEY: 'b' }).voice
  t.strictSame(openai, {
    apiKey: 'a',
    url: 'wss://api.openai.com/v1/realtime',
    model: 'gpt-realtime-2.1',
    voice: 'marin',
    transcriptionModel: 'gpt-transcribe',
    reasoningEffort: null,
    turnDetection: { type: 'server_vad' },
  })
  t.strictSame(gemini, {
    apiKey: 'b',
    url: 'wss://generativelanguage.googleapis.com',
    model: 'gemini-3.8-live',
    voice: null,
  })
})

test('OpenAI Realtime finds the end of a turn by sound, or by meaning as eagerly as is said', async (t) => {
  const openai = (more: Record<string, string>) => readConfig({ OPENAI_API_KEY: 'a', ...more }).voice.openai
  const meaning = { OPENAI_REALTIME_TURN_DETECTION: 'semantic_vad' }
  t.strictSame(openai(meaning)?.turnDetection, { type: 'semantic_vad', eagerness: 'auto' })
  t.match(openai({ ...meaning, OPENAI_REALTIME_EAGERNESS: 'low' })?.turnDetection, { eagerness: 'low' })
  t.equal(openai({ OPENAI_REALTIME_REASONING_EFFORT: 'minimal' })?.reasoningEffort, 'minimal')
  t.throws(() => openai({ OPENAI_REALTIME_EAGERNESS: 'low' }), /needs OPENAI_REALTIME_TURN_DETECTION=semantic_vad/)
  t.throws(() => openai({ OPENAI_REALTIME_REASONING_EFFORT: 'enormous' }), /OPENAI_REALTIME_REASONING_EFFORT/)
})

test('the cascade has one address for all its parts, or one for each', async (t) => {
  const one = readConfig({ CASCADE_URL: 'http://127.0.0.1:11434/v1/', CASCADE_CHAT_MODEL: 'llama' }).voice.cascade
  t.strictSame(one, {
    chat: { url: 'http://127.0.0.1:11434/v1', model: 'llama', apiKey: null },
    transcription: { url: 'http://127.0.0.1:11434/v1', model: 'gpt-transcribe', apiKey: null, streams: true },
    speech: { url: 'http://127.0.0.1:11434/v1', model: 'kokoro', voice: 'alloy', rateHz: null, apiKey: null },
  })
  const parts = { CASCADE_CHAT_URL: 'http://a/v1', CASCADE_TRANSCRIPTION_URL: 'http://b/v1', CASCADE_CHAT_MODEL: 'm' }
  const each = readConfig({ ...parts, CASCADE_SPEECH_URL: 'http://c/v1', CASCADE_SPEECH_RATE: '16000' }).voice.cascade
  t.same([each?.chat.url, each?.transcription.url, each?.speech.url], ['http://a/v1', 'http://b/v1', 'http://c/v1'])
  t.equal(each?.speech.rateHz, 16_000)
  t.throws(() => readConfig(parts), /CASCADE_CHAT_URL needs CASCADE_URL or CASCADE_SPEECH_URL/)
})

test('what has no effect without something else names both', async (t) => {
  const alone = (environment: Record<string, string>, both: RegExp): void =>
    void t.throws(() => readConfig(environment), both)
  alone({ OPENAI_REALTIME_URL: 'wss://a' }, /^OPENAI_REALTIME_URL needs OPENAI_API_KEY: set both, or neither$/)
  alone({ GEMINI_LIVE_VOICE: 'Puck' }, /GEMINI_LIVE_VOICE needs GEMINI_API_KEY/)
  alone({ CASCADE_API_KEY: 'x' }, /CASCADE_API_KEY needs CASCADE_URL/)
  alone({ CASCADE_URL: 'http://a' }, /CASCADE_URL needs CASCADE_CHAT_MODEL/)
})

test('recordings stay in their folder, or go to a bucket that is named path-style with both halves of its key', async (t) => {
  t.equal(readConfig({}).recordingsBucket, null)
  const keys = { RECORDINGS_ACCESS_KEY_ID: 'GK1', RECORDINGS_SECRET_ACCESS_KEY: 'secret' }
  const bucketOf = (url: string, more = {}) => readConfig({ RECORDINGS_URL: url, ...keys, ...more }).recordingsBucket
  const expected = { region: 'us-east-1', accessKeyId: 'GK1', secretAccessKey: 'secret' }
  t.strictSame(bucketOf('http://127.0.0.1:3900/recordings/'), { url: 'http://127.0.0.1:3900/recordings', ...expected })
  t.match(bucketOf('https://s3.example/my-bucket/calls', { RECORDINGS_REGION: 'garage' }), { region: 'garage' })
  for (const wrong of ['/?x=1', '/bucket?x=1', '/bucket#x', '/a b', '/bucket//x', ''])
    t.throws(() => bucketOf(`https://s3.example${wrong}`), /RECORDINGS_URL: must read like/, wrong)
  t.throws(() => bucketOf('https://key:secret@s3.example/bucket'), /RECORDINGS_URL: must read like/)
  t.throws(() => readConfig({ RECORDINGS_URL: 'http://a/b' }), /RECORDINGS_URL needs RECORDINGS_ACCESS_KEY_ID/)
  t.throws(() => readConfig(keys), /RECORDINGS_ACCESS_KEY_ID needs RECORDINGS_URL/)
})

test('no error of a setting repeats a key', async (t) => {
  for (const name of ['OPENAI_API_KEY', 'GEMINI_API_KEY', 'CASCADE_API_KEY', 'RECORDINGS_SECRET_ACCESS_KEY'])
    t.throws(() => readConfig({ [name]: 'sk very secret' }), {
      message: new RegExp(`^(?![^]*very secret)[^]*${name}: must be one word`),
    })
})

test('.env.example lists every setting, and no other', async (t) => {
  const text = await readFile(new URL('../../.env.example', import.meta.url), 'utf8')
  const listed = [...text.matchAll(/^#?([A-Z_]+)=/gm)].map(([, name]) => name)
  t.same(new Set(listed), new Set(settingNames))
  for (const [, name = '', value = ''] of text.matchAll(/^#([A-Z_]+)=(\S+)$/gm))
    if (!name.startsWith('TLS')) t.doesNotThrow(() => readConfig({ ...partnersOf[name], [name]: value }), name)
})

test('personal data is masked in the log unless LOG_PERSONAL is on, also within what is told of every line and of the database', async (t) => {
  const log = new URL('../../app/log.ts', import.meta.url).href
  const program = `
    const { createLog } = await import(${JSON.stringify(log)})
    const log = createLog('info', process.argv[1] === 'on')
    const error = Object.assign(new Error('refused'), { detail: 'Key (phone)=(+4930123) exists', code: '23505' })
    log.info('a call', { callId: 'c1', personal: { calling: '+4930123', who: { name: 'Ada +4930123' } } })
    log.with({ personal: { address: '+4930123' } }).warn('a line', { error })
    log.error('nothing personal')`
  const linesOf = async (told: string) => {
    const args = ['--input-type=module', '-e', program, told]
    const { stderr } = await promisify(execFile)(process.execPath, args)
    return stderr.trimEnd().split('\n')
  }
  const masked = await linesOf('off')
  t.notMatch(masked.join(), '4930123')
  const [first, second, third] = masked.map((line) => JSON.parse(line))
  t.match(first, { callId: 'c1', personal: { calling: '[masked]', who: '[masked]' }, msg: 'a call' })
  t.match(second, { personal: { address: '[masked]' }, error: { message: 'refused', code: '23505' } })
  t.match(third, { msg: 'nothing personal' })
  t.equal((await linesOf('on')).join().split('4930123').length, 5, 'four times')
  t.equal(readConfig({}).logsPersonal, false)
  t.equal(readConfig({ LOG_PERSONAL: 'on' }).logsPersonal, true)
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
