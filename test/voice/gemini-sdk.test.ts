/** The fake of Gemini Live is what the provider's own SDK takes it for: what we prove against it is proved against the protocol. */
import { GoogleGenAI, Modality, type LiveServerMessage, type Session } from '@google/genai'
import { test, type Test } from 'tap'
import { systemClock } from '../../app/clock.ts'
import { bytesOf } from '../../model/frame.ts'
import { createSynthesiser } from '../../voice/engines/embedded/synthesiser.ts'
import type { GeminiOptions } from '../fake/gemini-live-options.ts'
import { openGeminiServer } from '../fake/gemini-live-server.ts'
import { createQuietLog } from '../fake/quiet-log.ts'

const synthesiser = await createSynthesiser({ log: createQuietLog(), clock: systemClock })
const speech = await synthesiser.speak('Yes, please.', 'rms')
await synthesiser.close()

async function connect(t: Test, options: GeminiOptions) {
  const server = await openGeminiServer(options)
  const messages: LiveServerMessage[] = []
  const looking = new Set<() => void>()
  const closed = Promise.withResolvers<{ readonly code: number; readonly reason: string }>()
  const client = new GoogleGenAI({
    apiKey: server.key,
    httpOptions: { baseUrl: server.url.replace('ws:', 'http:') },
  })
  let session: Session | null = null
  t.teardown(async () => {
    session?.close()
    await server.close()
  })
  const connecting = client.live.connect({
    model: 'gemini-3.8-live',
    config: {
      responseModalities: [Modality.AUDIO],
      inputAudioTranscription: {},
      outputAudioTranscription: {},
      sessionResumption: {},
      tools: [{ functionDeclarations: [{ name: 'lookup', description: 'Looks up.' }] }],
    },
    callbacks: {
      onmessage(message) {
        messages.push(message)
        for (const look of looking) look()
      },
      onclose: ({ code, reason }) => closed.resolve({ code, reason }),
    },
  })
  const until = (fits: (message: LiveServerMessage) => unknown): Promise<LiveServerMessage> =>
    new Promise((resolve) => {
      const look = (): void => {
        const found = messages.find(fits)
        if (!found) return
        looking.delete(look)
        resolve(found)
      }
      looking.add(look)
      look()
    })
  const join = async (): Promise<Session> => (session = await connecting)
  return { server, messages, closed: closed.promise, until, join }
}

/** The speech and a second of silence, in frames. */
function speak(session: Session): void {
  const line = new Int16Array(Math.ceil(speech.length / 320) * 320 + 16_000)
  line.set(speech)
  for (let at = 0; at < line.length; at += 320) {
    const data = Buffer.from(bytesOf(line.slice(at, at + 320))).toString('base64')
    session.sendRealtimeInput({ audio: { data, mimeType: 'audio/pcm;rate=16000' } })
  }
}

test('the SDK speaks, and hears sound and reads both texts until the turn is complete', async (t) => {
  const { join, until, messages } = await connect(t, {
    model: ({ text }) => [{ text: `You said ${text}` }],
    transcript: () => 'Yes, please.',
  })
  speak(await join())
  await until(({ serverContent }) => serverContent?.turnComplete)
  const textOf = (key: 'inputTranscription' | 'outputTranscription') =>
    messages.map(({ serverContent }) => serverContent?.[key]?.text ?? '').join('')
  t.equal(textOf('inputTranscription'), 'Yes, please.')
  t.equal(textOf('outputTranscription'), 'You said Yes, please.')
  t.ok(messages.some(({ data }) => Buffer.from(data ?? '', 'base64').length === 4800))
  t.ok(
    (await until(({ sessionResumptionUpdate }) => sessionResumptionUpdate?.newHandle)).sessionResumptionUpdate
      ?.resumable,
  )
})

test('the SDK is called for a tool, and what it answers is spoken about', async (t) => {
  const { join, until, server } = await connect(t, {
    model: ({ kind, responses }) =>
      kind === 'tool'
        ? [{ text: `It is ${String(responses[0]?.response?.['output'])}.` }]
        : [{ call: 'lookup', args: { key: 'blue' } }],
  })
  const session = await join()
  session.sendRealtimeInput({ text: 'Look it up.' })
  const [call] = (await until(({ toolCall }) => toolCall)).toolCall?.functionCalls ?? []
  t.match(call, { name: 'lookup', args: { key: 'blue' } })
  session.sendToolResponse({ functionResponses: { id: call!.id!, name: 'lookup', response: { output: 'seven' } } })
  await until(({ serverContent }) => serverContent?.outputTranscription?.text?.includes('seven'))
  t.equal(server.received('toolResponse').length, 1)
})

test('the SDK is told that the connection goes away, and why it was closed', async (t) => {
  const { join, until, closed, server } = await connect(t, { model: () => [] })
  await join()
  server.sessions[0]!.goAway('50s')
  t.equal((await until(({ goAway }) => goAway)).goAway?.timeLeft, '50s')
  server.sessions[0]!.close(1011, 'The session has expired.')
  t.same(await closed, { code: 1011, reason: 'The session has expired.' })
})

test('the SDK with content in the middle of a session is closed with 1007', async (t) => {
  const { join, closed } = await connect(t, { model: () => [] })
  ;(await join()).sendClientContent({ turns: [{ role: 'user', parts: [{ text: 'Hello.' }] }] })
  t.equal((await closed).code, 1007)
})
