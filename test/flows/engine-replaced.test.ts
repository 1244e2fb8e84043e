/** A telephone call whose voice provider is gone in the midst of it: another one goes on, with what was said and one sentence that bridges. */
import { test } from 'tap'
import { answer, callerSays, goodbye, greeting, openFailingCalls } from '../scenes/failing-calls.ts'
import { heard } from '../scenes/ten-turns/caller.ts'

const bridging = 'Sorry, the line broke off.'

test(
  'a provider whose socket dies in a telephone call is replaced by the next that the worker names',
  { timeout: 120_000 },
  async (t) => {
    const calls = await openFailingCalls(t)
    const { realtime, cascade, greeted, speaks, ended } = calls
    const config = { llmProvider: 'voice_provider_a' as const, fallbackProviders: ['cascade' as const] }
    const line = await calls.lineFor('replaced', config)
    calls.realtimeSays([{ text: answer }])
    const caller = await greeted(line)
    await speaks(caller, answer)
    const asked: string[][] = []
    cascade.server.thinks((messages) => {
      asked.push(messages.map(({ role, content }) => `${role}: ${content ?? ''}`))
      return asked.length === 1 ? bridging : goodbye
    })
    // Its socket dies, and nobody is there any more.
    await realtime.line.answers('nobody')
    await heard(caller, bridging)
    await speaks(caller, goodbye)
    await caller.hangUp()

    const { status, transcript } = await ended(line)
    t.equal(status, 'completed')
    const said = (transcript as readonly { readonly text: string }[]).map(({ text }) => text)
    t.same(said.slice(0, 4), [greeting, callerSays, answer, bridging])
    t.same(said.slice(-2), [callerSays, goodbye])
    t.equal(said.filter((text) => text === bridging).length, 1, 'bridged once')
    const told = asked[0]?.join('\n') ?? ''
    for (const text of [`assistant: ${greeting}`, `user: ${callerSays}`, `assistant: ${answer}`]) t.match(told, text)
    await realtime.line.answers('provider')
  },
)
