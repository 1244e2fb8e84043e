/**
 * Owns a call whose leg and whose actor are in different processes: a real leg and a real conversation, each on a bus of its own that is joined with the
 * other over a real NATS server, which the test may end.
 */
import type { Test } from 'tap'
import { createJoinedBus } from '../../actors/bus/joined-bus.ts'
import { createLocalBus } from '../../actors/bus/local-bus.ts'
import { createNatsBus } from '../../actors/bus/nats-bus.ts'
import type { CallFact } from '../../actors/call/call-event.ts'
import { createConversation, type Conversation } from '../../actors/conversation/conversation.ts'
import type { ConversationStart } from '../../actors/conversation/talk-start.ts'
import { toLegEvent } from '../../actors/node/leg-link.ts'
import { createOpusLibrary } from '../../media/codecs/opus.ts'
import { subjectsOf } from '../../model/bus.ts'
import type { CallId, NodeId } from '../../model/ids.ts'
import type { Log } from '../../model/log.ts'
import type { NegotiatedAudio } from '../../model/rtp-transport.ts'
import type { Said, VoiceEngine } from '../../model/voice-engine.ts'
import { effectiveConfigOf } from '../../model/worker.ts'
import { negotiatedPcmu } from '../fake/scripted-transport.ts'
import { lastingClock } from '../fake/lasting-clock.ts'
import { natsServerPaths, startNatsServer } from '../peers/nats-server.ts'
import { needsTool } from '../peers/tools.ts'
import { until } from './in-time.ts'
import { openLegScene } from './leg-scene.ts'

export const callId = '0198c000-0000-7000-8000-000000000001' as CallId

/** One process of several. */
export async function joinedBus(t: Pick<Test, 'teardown'>, url: string) {
  const lines: string[] = []
  const write = (message: string): void => void lines.push(message)
  const log: Log = { debug: write, info: write, warn: write, error: write, with: () => log }
  const clock = lastingClock
  const wire = await createNatsBus({ url, log, clock, name: 'test', hearsItself: false })
  const bus = createJoinedBus({ local: createLocalBus({ log, clock }), wire })
  t.teardown(() => bus.close())
  return {
    bus,
    log,
    said: (line: string) =>
      until(
        () => lines.includes(line),
        () => lines,
      ),
  }
}

type Known = Partial<Pick<ConversationStart, 'agentUntil' | 'settled'>> & { readonly history?: readonly Said[] }

/** Null: there is no server here. */
export async function openSplitCall(t: Test, audio: NegotiatedAudio = negotiatedPcmu) {
  const program = needsTool(t, 'nats-server', natsServerPaths)
  if (!program) return null
  let server = await startNatsServer(program)
  t.teardown(() => server.close())
  const far = await joinedBus(t, server.url)
  const scene = openLegScene(t, audio, { opus: createOpusLibrary(), bus: far.bus, nodeId: 'leg' as NodeId })
  const processes = [far]
  const answeredAt = lastingClock.now()
  /** All that was said up to now has arrived. */
  const settle = async (): Promise<void> => {
    for (const { bus } of [...processes, ...processes]) await bus.flush()
  }
  /** The actor of the call in another process, which the result ends without a word. */
  const openActor = async (epoch: number, engine: VoiceEngine, { history = [], ...known }: Known = {}) => {
    const near = await joinedBus(t, server.url)
    processes.push(near)
    const facts: CallFact[] = []
    const conversation: Conversation = createConversation(
      {
        callId,
        epoch,
        bus: near.bus,
        nodeId: `actor ${epoch}` as NodeId,
        engine,
        clock: lastingClock,
        log: near.log,
        post: (fact) => void facts.push(fact),
        signal: () => undefined,
      },
      {
        config: {
          callId,
          direction: 'inbound',
          language: 'en',
          worker: effectiveConfigOf({}),
          script: null,
          instructions: null,
          context: null,
          customer: null,
          tools: [],
          history,
          owesReply: false,
          memory: null,
        },
        recording: null,
        answeredAt,
        turns: history.length,
        ...known,
      },
    )
    near.bus.subscribe(subjectsOf(callId).legEvent, ({ payload }) => {
      const event = toLegEvent(payload)
      if (event) conversation.legEvent(event)
    })
    await near.bus.flush()
    await conversation.open()
    const kill = async (): Promise<void> => {
      processes.splice(processes.indexOf(near), 1)
      await near.bus.close()
      conversation.abandon()
    }
    t.teardown(kill)
    return { ...near, facts, conversation, kill }
  }
  return {
    ...scene,
    far,
    openActor,
    settle,
    async run(ms: number, each?: () => void) {
      await scene.run(ms, each)
      await settle()
    },
    async stopNats() {
      await server.close()
      await Promise.all(processes.map(({ said }) => said('bus connection lost')))
    },
    async startNats() {
      server = await startNatsServer(program, server.port)
      await Promise.all(processes.map(({ said }) => said('bus connection is back')))
      await settle()
    },
  }
}
