/** The embedded engine keeps the rules of the VoiceEngine port. */
import { systemClock } from '../../app/clock.ts'
import { createEmbeddedEngine } from '../../voice/engines/embedded/engine.ts'
import { createQuietLog } from '../fake/quiet-log.ts'
import { callConfig } from '../scenes/spoken-call.ts'
import { proveVoiceEngine } from './voice-engine-rules.ts'

const script = `say Welcome. This line is long enough to be cut off.
ask tea (yes/no): Would you like tea?
end Fine.`
const toolScript = `ask tea (yes/no): Would you like tea?
tool lookup (key: "blue") into found: One moment.
end It says {{found.result}}.`

proveVoiceEngine('embedded', async () => {
  const engine = await createEmbeddedEngine({ log: createQuietLog(), clock: systemClock, threads: 1 })
  const answer = await engine.speak('Yes, please.', 'rms')
  return {
    engine,
    config: callConfig({ script }),
    answer,
    swollen: {
      version: 1,
      step: 1,
      phase: 'speaking',
      answers: { tea: true },
      misunderstood: 0,
      unanswered: 0,
      results: { kept: 'seven', found: 'ü'.repeat(50_000) },
    },
    withTool: { config: callConfig({ script: toolScript }), wish: answer },
    impossible: callConfig({ language: 'xx' }),
    close: () => engine.close(),
  }
})
