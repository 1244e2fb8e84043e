/**
 * Owns a supervisor without a browser: somebody of an account who is signed in at one process, with a WebRTC line of their own whose tone never ends; and
 * an ear that tells the tones of caller, agent and supervisor from each other.
 */
import { setInterval } from 'node:timers'
import type { Test } from 'tap'
import { createWeriftCaller } from '../../gateway/werift/caller.ts'
import { lawOfEncoding } from '../../media/codecs/g711.ts'
import type { AccountId, CallId } from '../../model/ids.ts'
import type { RtpPacket } from '../../model/rtp-transport.ts'
import { addMember } from '../../store/memberships.ts'
import { createPasswords } from '../../store/passwords.ts'
import type { Sql } from '../../store/sql.ts'
import { createSession } from '../../store/user-sessions.ts'
import { createUser } from '../../store/users.ts'
import { inTime, until } from './in-time.ts'
import { cheap, password } from './people.ts'
import { newId } from './tenant.ts'

/** Hz. The agent's is that of phone-node-process.ts. */
const tones = { caller: 900, agent: 440, supervisor: 1_400 } as const
type Voice = keyof typeof tones

const [rateHz, frameSamples] = [8_000, 160] as const
const law = lawOfEncoding('pcmu')
/** Of a tone of 8,000 that is there all of a packet. */
const heardFrom = 3_000

/** How much of a tone is in it: its amplitude. */
function amountOf(samples: Int16Array, hz: number): number {
  let [real, imaginary] = [0, 0]
  for (const [at, sample] of samples.entries()) {
    const angle = (2 * Math.PI * hz * at) / rateHz
    real += sample * Math.cos(angle)
    imaginary += sample * Math.sin(angle)
  }
  return (2 * Math.hypot(real, imaginary)) / samples.length
}

/** For lines of G.711, µ-law. */
export function createEar() {
  const heard: Record<Voice, number> = { caller: 0, agent: 0, supervisor: 0 }
  const samples = new Int16Array(frameSamples)
  let heardAt = performance.now()
  let longest = 0
  return {
    take({ payload }: Pick<RtpPacket, 'payload'>): void {
      if (payload.length !== frameSamples) return
      law.decode(payload, samples)
      let isVoice = false
      for (const [voice, hz] of Object.entries(tones) as [Voice, number][]) {
        if (amountOf(samples, hz) < heardFrom) continue
        heard[voice]++
        isVoice = true
      }
      if (!isVoice) return
      longest = Math.max(longest, performance.now() - heardAt)
      heardAt = performance.now()
    },
    /** Packets up to now. */
    count: (voice: Voice): number => heard[voice],
    /** Resolves with so many more of them. */
    async hears(voice: Voice, packets = 20): Promise<void> {
      const wanted = heard[voice] + packets
      await until(
        () => heard[voice] >= wanted,
        () => ({ voice, wanted, heard }),
      )
    },
    /** Ms without any voice, since it was asked last. */
    longestSilence(): number {
      const silence = Math.round(Math.max(longest, performance.now() - heardAt))
      longest = 0
      return silence
    },
  }
}

/** 20 ms of it every 20 ms; the result ends it. */
export function sendTone(voice: Voice, send: (packet: RtpPacket) => void): () => void {
  const samples = Int16Array.from({ length: frameSamples }, (_, at) =>
    Math.round(8_000 * Math.sin((2 * Math.PI * tones[voice] * at) / rateHz)),
  )
  const payload = new Uint8Array(frameSamples)
  law.encode(samples, payload)
  let count = 0
  const timer = setInterval(() => {
    count++
    send({ payloadType: 0, marker: false, sequenceNumber: count & 0xffff, timestamp: count * frameSamples, payload })
  }, 20)
  return () => clearInterval(timer)
}

type Where = {
  readonly sql: Sql
  /** Of the process that carries their sound. */
  readonly url: string
  readonly accountId: AccountId
  readonly callId: CallId
  readonly email: string
}

type Answer = { readonly status: number; readonly text: string }

/** Listens already. */
export async function openSupervisor(t: Pick<Test, 'teardown'>, { sql, url, accountId, callId, email }: Where) {
  const now = Date.now()
  const passwordHash = await createPasswords(cheap).hash(password)
  const userId = await createUser(sql, { email, name: email, passwordHash, newId, now })
  await addMember(sql, { accountId, userId, role: 'operator', now })
  const token = await createSession(sql, { userId, passwordHash, former: null, now })
  if (token === null) throw new Error('nobody can sign in')
  const asking = { cookie: `parley_session=${token}`, origin: url }
  const session = await fetch(`${url}/console/session`, { headers: asking })
  const { csrf } = (await session.json()) as { readonly csrf: string }
  const address = `${url}/console/accounts/${accountId}/phone-calls/${callId}/supervision`
  const ask = async (method: string, path = '', body?: object): Promise<Answer> => {
    const headers = { ...asking, 'x-csrf-token': csrf, 'content-type': 'application/json' }
    const answer = await fetch(address + path, { method, headers, ...(body && { body: JSON.stringify(body) }) })
    return { status: answer.status, text: await answer.text() }
  }

  const line = createWeriftCaller({ codecs: ['pcmu'] })
  t.teardown(() => line.close())
  const ear = createEar()
  line.onPacket(ear.take)
  const { status, text } = await ask('POST', '', { sdp: await line.offer() })
  if (status !== 200) throw new Error(`nobody may listen: ${status} ${text}`)
  const { id, sdp } = JSON.parse(text) as { readonly id: string; readonly sdp: string }
  await line.accept(sdp)
  await inTime('the line of a supervisor', line.connected)
  const fallSilent = sendTone('supervisor', line.send)
  t.teardown(fallSilent)
  return {
    id,
    userId,
    ear,
    takeOver: () => ask('POST', `/${id}/take-over`),
    giveBack: () => ask('POST', `/${id}/give-back`),
    /** Of their line. */
    ended: line.ended,
    whisper: (words: string) => ask('POST', '/whisper', { text: words }),
  }
}
