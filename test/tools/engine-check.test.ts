/** `npm run admin -- engine …`: which voice engines are set up, and whether one of them speaks; when it does not, where that ends and what to mend. */
import { execFile } from 'node:child_process'
import { createServer, type AddressInfo } from 'node:net'
import path from 'node:path'
import process from 'node:process'
import { setImmediate as turnOfTheLoop } from 'node:timers/promises'
import { test } from 'tap'
import { examineEngine, type EngineExamination } from '../../tools/admin/examine-engine.ts'
import type { CheckReport } from '../../tools/check-lines.ts'
import type { AudioFormat } from '../../model/frame.ts'
import {
  EngineRefusal,
  type EngineConfig,
  type EngineEvent,
  type EngineSession,
  type VoiceEngine,
} from '../../model/voice-engine.ts'
import { createFolder } from '../scenes/folder.ts'
import { createHandClock } from '../fake/hand-clock.ts'
import { idleSession } from '../fake/idle-session.ts'
import { openRealtimeServer } from '../fake/openai-realtime-server.ts'

const settings = { key: 'A_KEY', model: 'A_MODEL', url: 'A_URL' }
const telephone: AudioFormat = { encoding: 'pcmu', rateHz: 8000 }

type Emit = (event: EngineEvent) => void

/** Hears and speaks as a telephone does; `hear` is called with how many frames there were. */
function engineThat(hear: (frames: number, emit: Emit) => void, log: string[] = [], configs: EngineConfig[] = []) {
  const engine: VoiceEngine = {
    name: 'voice_provider_a',
    hears: [telephone],
    speaks: [telephone],
    open(config, emit) {
      configs.push(config)
      let frames = 0
      const session: EngineSession = {
        ...idleSession,
        hear(payload) {
          log.push(`${payload.length} of ${[...new Set(payload)].join(' ')}`)
          hear(++frames, emit)
        },
        close: () => void log.push('closed'),
      }
      return Promise.resolve(session)
    },
    close: () => Promise.resolve(),
  }
  return engine
}

/** As an hour glass would: 20 ms at a time, until it is told. */
async function reportsOf(engine: VoiceEngine, change: Partial<EngineExamination> = {}): Promise<CheckReport[]> {
  const clock = createHandClock()
  const examined = Array.fromAsync(
    examineEngine({ engine, addresses: [], settings, callId: 'a' as never, clock, ...change }),
  )
  let isOver = false
  const over = (): void => void (isOver = true)
  examined.then(over, over)
  for (; !isOver; clock.advance(20)) await turnOfTheLoop()
  if (clock.pending() > 0) throw new Error(`${clock.pending()} timers are left`)
  return examined
}

const rowsOf = (reports: readonly CheckReport[]): string[] =>
  reports.map(({ name, verdict, got }) => `${verdict}: ${name}: ${got}`)

test('an engine that speaks is timed stage by stage, and hears a caller who is silent', async (t) => {
  const log: string[] = []
  const configs: EngineConfig[] = []
  const engine = engineThat(
    (frames, emit) => {
      if (frames === 2) emit({ type: 'agent_text', itemId: 'a', text: 'Hello' })
      if (frames === 3) emit({ type: 'audio', itemId: 'a', payload: new Uint8Array(160) })
      if (frames === 4) emit({ type: 'agent_text', itemId: 'a', text: 'Hello there.' })
      if (frames === 5) emit({ type: 'item_done', itemId: 'a' })
    },
    log,
    configs,
  )
  t.same(rowsOf(await reportsOf(engine)), [
    'passed: a session opens: after 0 ms',
    'passed: it begins to speak: after 40 ms',
    'passed: its sentence is complete: after 80 ms',
    'passed: it tells what it says: Hello there.',
  ])
  t.same(new Set(log), new Set(['160 of 255', 'closed']), 'silence of µ-law; the session is closed')
  t.match(configs[0], {
    instructions: 'Reply with one short sentence.',
    formats: { hears: telephone, speaks: telephone },
  })
})

test('what a provider refuses with is told with the setting to mend', async (t) => {
  for (const [reason, mend] of [
    ['it answered 401', /^see A_KEY/],
    ['API key not valid. Please pass a valid API key.', /^see A_KEY/],
    ['insufficient_quota: you exceeded your current quota', /^the account of A_KEY is at its limit/],
    ['it answered 404', /^see A_MODEL and A_URL/],
    ['model_not_found: The model `x` does not exist', /^see A_MODEL/],
    ['invalid value for voice: rms', /^see the name of the voice/],
    ['it cannot be reached: ECONNREFUSED', /^see A_URL/],
    ['something else', /own words/],
  ] as const) {
    const engine: VoiceEngine = {
      ...engineThat(() => undefined),
      open: () => Promise.reject(new EngineRefusal(reason, false)),
    }
    const [report, ...more] = await reportsOf(engine)
    t.match(report, { name: 'a session opens', verdict: 'failed', got: reason, mend })
    t.same(more, [], 'and no stage behind it is asked')
  }
})

test('a session that is too late, one that says nothing, and one that dies end the check at their stage', async (t) => {
  const log: string[] = []
  const late = Promise.withResolvers<EngineSession>()
  const never: VoiceEngine = { ...engineThat(() => undefined), open: () => late.promise }
  t.match(await reportsOf(never), [{ name: 'a session opens', verdict: 'failed', got: 'no answer within 20 s' }])
  late.resolve({ ...idleSession, close: () => void log.push('closed') })
  await turnOfTheLoop()
  t.same(log, ['closed'], 'the one that came too late is not left open')

  const silent = await reportsOf(engineThat(() => undefined))
  t.match(silent.at(-1), { name: 'it begins to speak', verdict: 'failed', got: 'no answer within 20 s', mend: /A_URL/ })

  const dying = engineThat((frames, emit) => {
    if (frames === 2) emit({ type: 'audio', itemId: 'a', payload: new Uint8Array(160) })
    if (frames === 3) emit({ type: 'failed', details: 'the connection was lost (1006)', isRetryable: true })
  })
  t.match((await reportsOf(dying)).at(-1), {
    name: 'its sentence is complete',
    verdict: 'failed',
    got: 'the connection was lost (1006)',
  })

  const mute = engineThat((frames, emit) => {
    if (frames === 2) emit({ type: 'audio', itemId: 'a', payload: new Uint8Array(160) })
    if (frames === 3) emit({ type: 'item_done', itemId: 'a' })
  })
  t.match((await reportsOf(mute)).at(-1), { name: 'it tells what it says', verdict: 'failed' })
})

test('a provider that is not there is told before a session is tried', async (t) => {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const address = `ws://127.0.0.1:${port}/v1`
  const configs: EngineConfig[] = []
  const engine = engineThat((_, emit) => emit({ type: 'failed', details: 'x', isRetryable: false }), [], configs)
  // The time of sockets is not that of the hand clock.
  const standing = { ...createHandClock(), after: () => () => undefined }
  const reached = await examineEngine({
    engine,
    addresses: [address],
    settings,
    callId: 'a' as never,
    clock: standing,
  }).next()
  t.match(reached.value, { name: `127.0.0.1 port ${port} is reached`, verdict: 'passed' })
  await new Promise((resolve) => server.close(resolve))
  const gone = await Array.fromAsync(
    examineEngine({ engine, addresses: [address], settings, callId: 'a' as never, clock: standing }),
  )
  t.match(gone, [{ verdict: 'failed', got: 'ECONNREFUSED', mend: /^see A_URL/ }])
  t.equal(configs.length, 0)
})

const program = path.join(import.meta.dirname, '../../tools/admin/admin.ts')

type Ended = { readonly code: number | string | null; readonly out: string; readonly err: string }

test('as a process', async (t) => {
  const cwd = await createFolder(t)
  const admin = (args: readonly string[], env: Record<string, string> = {}): Promise<Ended> =>
    new Promise((resolve) => {
      const options = { cwd, env: { PATH: process.env['PATH'], LOG_LEVEL: 'error', ...env } }
      execFile(process.execPath, [program, 'engine', ...args], options, (error, out, err) =>
        resolve({ code: error ? (error.code ?? null) : 0, out: out.trimEnd(), err: err.trimEnd() }),
      )
    })

  await t.test('what is set up is listed in its order, without a key', async (t) => {
    const bare = await admin(['list'])
    t.equal(bare.code, 0, bare.err)
    t.match(
      bare.out,
      /^1\. embedded +on this machine, hearing by fsg\n– {2}voice_provider_a +not set up: set OPENAI_API_KEY\n/,
    )
    const env = { GEMINI_API_KEY: 'secret-g', CASCADE_URL: 'http://127.0.0.1:9/v1', CASCADE_CHAT_MODEL: 'llama' }
    const { out } = await admin(['list'], { ...env, OPENAI_API_KEY: 'secret-o' })
    t.match(
      out,
      /^1\. voice_provider_a .*\n2\. voice_provider_b .*\n3\. cascade +llama, 127\.0\.0\.1:9\n4\. embedded .*$/,
    )
    t.notMatch(out, 'secret')
  })

  await t.test('the embedded engine says its sentence', async (t) => {
    const { code, out, err } = await admin(['check', 'embedded'])
    t.match({ code, err }, { code: 0, err: '' })
    t.match(out, /✓ it tells what it says +This is a test call\./)
    t.match(out, /4 passed.*the engine works$/)
  })

  await t.test('a hosted engine, with a key that is good and one that is not', async (t) => {
    const server = await openRealtimeServer({ model: () => [{ text: 'All is well.' }] })
    t.teardown(() => server.close())
    const env = { OPENAI_REALTIME_URL: server.url, OPENAI_API_KEY: server.key }
    const good = await admin(['check', 'voice_provider_a'], env)
    t.equal(good.code, 0, `${good.out}\n${good.err}`)
    t.match(good.out, /✓ 127\.0\.0\.1 port \d+ is reached +after \d+ ms\n✓ a session opens +after \d+ ms\n/)
    t.match(good.out, /✓ it tells what it says +All is well\.\n/)
    const bad = await admin(['check', 'voice_provider_a'], { ...env, OPENAI_API_KEY: 'sk-not-good' })
    t.match(bad, { code: 1, out: /✗ a session opens .*401\n.*\n +mend: +see OPENAI_API_KEY/ })
    t.notMatch(good.out + good.err + bad.out + bad.err, new RegExp(`${server.key}|sk-not-good`))
  })

  await t.test('what cannot be checked says why', async (t) => {
    t.match(await admin(['check', 'voice_provider_b']), {
      code: 1,
      err: 'voice_provider_b is not set up: set GEMINI_API_KEY',
    })
    t.match(await admin(['check', 'siri']), { code: 1, err: /^<provider> must be one of voice_provider_a, / })
    t.match(await admin(['check']), { code: 1, err: '<provider> is missing' })
  })
})
