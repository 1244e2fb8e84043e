/**
 * Owns one node of the service in a process of its own, so that it can be killed: given a folder, a bus and, for a telephone edge, a SIP port.
 * Its engine says one sentence after the other and goes on counting where a former session stopped. Where the script says so it opens a session
 * before the call is answered, and cannot talk then. Of a caller whom it only hears it understands a word for each second of sound.
 */
import { soundThreads } from './sound-threads.ts'
import process from 'node:process'
import { readConfig } from '../../app/config.ts'
import { createLog } from '../../app/log.ts'
import { startParley } from '../../app/parley.ts'
import type { VoiceEngine } from '../../model/voice-engine.ts'
import { idleSession } from '../fake/idle-session.ts'
import { tone } from '../load/echo-engine.ts'

const format = { encoding: 'pcm16', rateHz: 16000 } as const
const spoken = tone(440, 25)

const engine: VoiceEngine = {
  name: 'counting',
  hears: [format],
  speaks: [format],
  async open({ memory, script }, emit) {
    if (script?.includes('mute')) {
      // It opens, and so the call is answered.
      setImmediate(() => emit({ type: 'failed', details: 'this voice cannot talk', isRetryable: false }))
      return idleSession
    }
    let count = typeof memory === 'number' ? memory : 0
    const say = () => {
      const itemId = String(count)
      emit({ type: 'agent_text', itemId, text: `Number ${count}.` })
      emit({ type: 'audio', itemId, payload: spoken })
      emit({ type: 'item_done', itemId })
      count += 1
      emit({ type: 'memory', memory: count })
    }
    setImmediate(say)
    const timer = setInterval(say, 1_000)
    return { ...idleSession, close: () => clearInterval(timer) }
  },
  async attend(_, emit) {
    let [frames, loud] = [0, 0]
    return {
      hear(payload) {
        frames++
        if (payload.some((byte) => byte !== 0) && ++loud % 50 === 0)
          emit({
            type: 'user_text',
            text: 'Yes.',
            isFinal: true,
            confidence: 1,
            from: frames * 20 - 1_000,
            to: frames * 20,
          })
      },
      hearOut: async () => emit({ type: 'user_text', text: 'Bye.', isFinal: true, confidence: 1, from: 0, to: 20 }),
      close: () => undefined,
    }
  },
  close: async () => undefined,
}

const [, , dataDir = '', natsUrl = '', sipPort = ''] = process.argv
const config = readConfig({
  ...soundThreads(),
  PORT: '0',
  ...(sipPort === '' ? { SIP: 'off' } : { SIP_PORT: sipPort }),
  DATA_DIR: dataDir,
  NATS_URL: natsUrl,
  SELF_TEST: 'off',
  // On a machine that others keep busy it would refuse the ninth call.
  LOAD_GATE: 'off',
  WEBHOOK_ALLOW_HOSTS: '127.0.0.1',
  DRAIN_TIMEOUT_SECONDS: '2',
  SHUTDOWN_GRACE_SECONDS: '2',
})
const service = await startParley({
  config,
  log: createLog('error'),
  engines: new Map([['embedded', engine]] as const),
  seed: async () => null,
})
process.on('message', () => {
  const closed = service.close()
  // From here on it takes no new calls.
  process.send?.('closing')
  void closed.then(() => process.disconnect())
})
process.send?.({ url: service.url })
