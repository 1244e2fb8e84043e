/** Owns the console of the tests: the real API, pages of people and listener on a real database, an account with all that pages show, and browsers in it. */
import { mkdir, writeFile } from 'node:fs/promises'
import path from 'node:path'
import type { Page } from 'playwright-core'
import type { Teardown } from './database.ts'
import { createApi } from '../../api/api.ts'
import { systemClock } from '../../app/clock.ts'
import { openScriptCheck } from '../../app/script-check.ts'
import { presetVariable } from '../../app/config.ts'
import { listen } from '../../gateway/listener/listen.ts'
import { createPeople } from '../../mcp/people/people.ts'
import { wavHeaderOf } from '../../media/recording/wav.ts'
import type { AccountId, CallId } from '../../model/ids.ts'
import { peaksBytesOf } from '../../model/recording-peaks.ts'
import type { Role } from '../../model/user.ts'
import { createAudit } from '../../store/audit.ts'
import type { LadderEntry } from '../../model/message-ladder.ts'
import { writeLadders } from '../../store/call-messages.ts'
import { addMember } from '../../store/memberships.ts'
import { renewCallWords } from '../../store/call-words.ts'
import { createPasswords } from '../../store/passwords.ts'
import { createUser } from '../../store/users.ts'
import { tellPolicy } from '../peers/browser-page.ts'
import { openChromium } from '../peers/chromium.ts'
import { createCutDatabase } from '../fake/cut-database.ts'
import { cheap, password } from './people.ts'
import { insertCall, insertTurns, newId, openSeededApi } from './seeded-api.ts'

export type ConsoleScene = Awaited<ReturnType<typeof openConsole>>

/** Everything by the clock of this machine. `notes`: what owners are told that is not set. */
export async function openConsole(t: Teardown, { notes = [] }: { readonly notes?: readonly string[] } = {}) {
  const away: { cut(): void; mend(): void }[] = []
  const seeded = await openSeededApi(t, {}, ({ sql: reached }) => {
    const database = createCutDatabase(reached)
    away.push(database)
    return database.sql
  })
  const { sql, log } = { sql: seeded.sql, log: seeded.deps.log }
  const clock = systemClock
  const audit = createAudit({ sql, clock, newId, log })
  t.teardown(() => audit.close())
  const passwords = createPasswords(cheap)
  const people = createPeople({ sql, clock, newId, log, audit, passwords, publicUrl: null })
  const api = createApi({
    ...seeded.deps,
    clock,
    audit,
    sessions: people,
    beside: people.pages,
    checkScript: await openScriptCheck(),
    notes,
  })
  const listener = await listen({
    host: '127.0.0.1',
    port: 0,
    tls: null,
    maxBodyBytes: 1_048_576,
    requestTimeout: 20_000,
    clock,
    fetch: api,
    tooLarge: () => new Response(null, { status: 413 }),
    sockets: {},
    driver: 'node',
    presetVariable,
  })
  t.teardown(() => listener.close(0))
  const url = `http://127.0.0.1:${listener.port}`
  const addUser = async (email: string, role: Role, accountId: AccountId = seeded.own.id) => {
    const passwordHash = await passwords.hash(password)
    const userId = await createUser(sql, { email, name: null, passwordHash, newId, now: clock.now() })
    await addMember(sql, { accountId, userId, role, now: clock.now() })
    return userId
  }
  const cut = () => away.forEach((database) => database.cut())
  const mend = () => away.forEach((database) => database.mend())
  return { ...seeded, url, people, clock, addUser, cut, mend }
}

/** What browsers complain of, and what a policy kept from them. */
export type Signed = { readonly page: Page; readonly complaints: string[] }

/** Not every call has them, and browsers tell of each 404. */
const mayBeMissing = (url: string): boolean => /\/(?:diagnostics|audio\/peaks|audio\/url)(?:\?|$)/.test(url)

/** One browser; each call signs somebody in, in a context of their own. */
export async function openBrowsers(t: Teardown, { url }: { readonly url: string }) {
  const { context, close } = await openChromium()
  t.teardown(close)
  const browser = context.browser()
  return async (
    email: string | null,
    { dark = false, phone = false }: { dark?: boolean; phone?: boolean } = {},
  ): Promise<Signed> => {
    const options = {
      colorScheme: dark ? ('dark' as const) : ('light' as const),
      viewport: phone ? { width: 360, height: 780 } : { width: 1280, height: 860 },
      reducedMotion: 'reduce' as const,
      locale: 'en-GB',
    }
    const own = browser ? await browser.newContext(options) : context
    const page = await own.newPage()
    const complaints: string[] = []
    page.on(
      'console',
      (message) =>
        message.type() === 'error' &&
        !mayBeMissing(message.location().url) &&
        complaints.push(`${message.text()} ${message.location().url}`),
    )
    page.on('pageerror', (error) => complaints.push(error.message))
    await page.addInitScript(tellPolicy)
    if (email !== null) {
      await page.goto(`${url}/sign-in?returnTo=%2Fconsole`)
      await page.getByLabel('E-mail address').fill(email)
      await page.getByLabel('Password').fill(password)
      await page.getByRole('button', { name: 'Sign in' }).click()
      await page.waitForURL(`${url}/console`)
    }
    return { page, complaints }
  }
}

const talk = [
  ['agent', 'Good morning, this is Ada of Northwind Clinic. How can I help you?', 400, 4_300],
  ['user', 'Hi, I would like to move my appointment of tomorrow.', 5_000, 8_200],
  ['agent', 'Of course. Which day would suit you better?', 9_050, 11_600],
  ['user', 'Thursday in the afternoon, if you have something.', 12_400, 15_100],
  ['agent', 'On Thursday I have half past two and a quarter', 16_000, 18_900],
  ['user', 'Half past two is perfect.', 18_700, 20_300],
  ['agent', 'Half past two on Thursday it is. You will get a message. Good bye!', 21_200, 25_600],
  ['user', 'Thank you, good bye.', 26_100, 27_500],
] as const

/** Ms. */
const talkLength = 28_000

/** A call that is over, with what was said, its recording and its waveform. */
export async function insertTalk(
  scene: Pick<ConsoleScene, 'sql' | 'own' | 'database'>,
  began: number,
): Promise<CallId> {
  const { sql, own, database } = scene
  const startedAt = began + 3_000
  const callId = await insertCall(
    sql,
    own.id,
    own.worker.id,
    {
      direction: 'inbound',
      transport: 'sip_trunk',
      progress: 'completed',
      outcome: 'completed',
      postProcessingStatus: 'completed',
      fromNumber: '+4930123456',
      toNumber: '+4930999000',
      createdAt: began,
      startedAt,
      endedAt: startedAt + talkLength,
      endedBy: 'caller',
      summary: 'The caller moved an appointment to Thursday, 14:30.',
    },
    {
      customer: { type: 'customer', firstName: 'Grace', lastName: 'Hopper' },
      nextAction: { key: 'appointment_moved', name: 'Appointment moved', data: { day: 'Thursday', time: '14:30' } },
      dimensions: { reason: 'reschedule', wanted_day: 'Thursday' },
      quality: {
        codec: 'pcma',
        packetMs: 20,
        received: { packets: 1_400, lost: 3, jitterMs: 4.2 },
        sent: { packets: 1_400, lost: 0, jitterMs: 2.1 },
        roundTripMs: 38,
        concealedMs: 60,
        lateFrames: 0,
      },
    },
  )
  await sql`update calls set evidence = ${sql.json({
    reason: { turn: 1, quote: 'move my appointment', source: 'embedded' },
    wanted_day: { turn: 3, quote: 'Thursday in the afternoon', source: 'embedded' },
  })} where id = ${callId}`
  await insertTurns(
    sql,
    own.id,
    callId,
    talk.map(([role, text, from, to]) => ({
      role,
      text,
      from,
      to,
      confidence: role === 'user' ? 0.93 : null,
      source: 'embedded',
    })),
  )
  await renewCallWords(sql, [callId])
  for (const [turnIndex, latency] of [
    [2, 0],
    [4, 120],
    [6, 60],
  ] as const)
    await sql`update transcript_turns set latency = ${sql.json({ endOfTurn: 420 + latency, recognised: 480 + latency, decided: 610 + latency, firstAudio: 800 + latency, firstPacket: 850 + latency })}
      where call_id = ${callId} and turn_index = ${turnIndex}`
  await writeLadders(sql, [[callId, { entries: ladderFrom(began), leftOut: 0 }]])
  await writeSound(path.join(database.dataDir, 'recordings', own.id), callId)
  await sql`update calls set recording_key = ${`${own.id}/${callId}.wav`}, recorded_ms = ${talkLength} where id = ${callId}`
  return callId
}

const ladder = [
  [0, 'in', 'INVITE sip:+4930999000@192.0.2.10 SIP/2.0', 'INVITE', true],
  [4, 'out', 'SIP/2.0 100 Trying', 'INVITE', false],
  [180, 'out', 'SIP/2.0 180 Ringing', 'INVITE', false],
  [3_000, 'out', 'SIP/2.0 200 OK', 'INVITE', true],
  [3_031, 'in', 'ACK sip:192.0.2.10:5060 SIP/2.0', 'ACK', false],
  [31_000, 'in', 'BYE sip:192.0.2.10:5060 SIP/2.0', 'BYE', false],
  [31_003, 'out', 'SIP/2.0 200 OK', 'BYE', false],
] as const

const ladderFrom = (began: number): LadderEntry[] =>
  ladder.map(([after, direction, line, method, hasSdp]) => ({
    at: began + after,
    direction,
    protocol: 'udp',
    local: '192.0.2.10:5060',
    remote: '203.0.113.5:5060',
    text: `${line}\r\nCall-ID: b1946ac92492@203.0.113.5\r\nCSeq: 1 ${method}\r\n${hasSdp ? 'Content-Type: application/sdp\r\n\r\nv=0\r\nm=audio 40000 RTP/AVP 8 101\r\n' : '\r\n'}`,
  }))

/** Agent on the left, caller on the right: a tone as long as each of them speaks. */
async function writeSound(folder: string, callId: CallId): Promise<void> {
  const rateHz = 8_000
  const samples = new Int16Array((talkLength / 1000) * rateHz * 2)
  const peaks: number[] = []
  for (let tenth = 0; tenth < talkLength / 100; tenth++) {
    const at = tenth * 100
    const loudness = (role: string): number =>
      talk.some(([who, , from, to]) => who === role && at >= from && at < to)
        ? 9_000 + 7_000 * Math.sin(tenth * 1.7)
        : 40
    const [agent, caller] = [loudness('agent'), loudness('user')]
    peaks.push(Math.round(agent), Math.round(caller))
    for (let sample = 0; sample < rateHz / 10; sample++) {
      const place = (tenth * (rateHz / 10) + sample) * 2
      samples[place] = agent * Math.sin((place / rateHz) * 700)
      samples[place + 1] = caller * Math.sin((place / rateHz) * 1_100)
    }
  }
  const sound = new Uint8Array(samples.buffer)
  await mkdir(folder, { recursive: true })
  await writeFile(path.join(folder, `${callId}.wav`), [wavHeaderOf({ rateHz, channels: 2 }, sound.length), sound])
  await writeFile(path.join(folder, `${callId}.peaks`), peaksBytesOf(2, talkLength, peaks))
}
