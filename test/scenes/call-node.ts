/** Owns one node of the service without edges: everything that acts for calls, on a real database and a clock by hand. */
import { randomBytes, createSecretKey } from 'node:crypto'
import { rm } from 'node:fs/promises'
import path from 'node:path'
import type { Test } from 'tap'
import { systemClock } from '../../app/clock.ts'
import { createLocalBus } from '../../actors/bus/local-bus.ts'
import { createAdmission } from '../../actors/call/birth/admission.ts'
import { lexicalEmbedder } from '../../actors/documents/lexical-embedder.ts'
import type { WorkerRequestResult } from '../../actors/call/life/performer-deps.ts'
import { createPhoneCallCreator } from '../../actors/call/birth/create-phone-call.ts'
import { createWebCallCreator } from '../../actors/call/birth/create-web-call.ts'
import { dialTimeWork, dialWork } from '../../actors/call/birth/dial-jobs.ts'
import { createEndCall } from '../../actors/call/life/end-call.ts'
import { createPauseRecording } from '../../actors/call/life/pause-recording.ts'
import { expireTokenWork } from '../../actors/call/birth/expire-token.ts'
import { createDispatcher } from '../../actors/rounds/dispatcher.ts'
import type { DueWatch } from '../../actors/rounds/due-watch.ts'
import { createPostProcessing } from '../../actors/after-call/post-processing.ts'
import { createScheduler } from '../../actors/rounds/scheduler.ts'
import { createToolbox } from '../../actors/tools/toolbox.ts'
import { createWebhookSender } from '../../actors/webhooks/sender.ts'
import type { NodePeers } from '../../actors/node/node-beats.ts'
import { createSwitchboard } from '../../actors/node/switchboard.ts'
import { subjectsOf, type Bus } from '../../model/bus.ts'
import type { WorkerRequestData } from '../../model/events.ts'
import type { Extractor } from '../../model/extraction.ts'
import type { CallId, NodeId } from '../../model/ids.ts'
import type { RecordingStore } from '../../model/recording-store.ts'
import type { ServerMessage } from '../../model/signaling.ts'
import type { Telephony } from '../../model/telephony.ts'
import type { Toolbox } from '../../model/tool.ts'
import { createJournalFolder, journalFolderOf } from '../../store/journal-folder.ts'
import { createKnowledge } from '../../store/knowledge.ts'
import { createSecretBox } from '../../store/secret-box.ts'
import type { Sql } from '../../store/sql.ts'
import { openTestDatabase } from './database.ts'
import { createHandClock, type HandClock } from '../fake/hand-clock.ts'
import { createQuietLog } from '../fake/quiet-log.ts'
import type { VoiceEngine } from '../../model/voice-engine.ts'
import type { LlmProvider } from '../../model/worker.ts'
import { createEmbeddedExtractor } from '../../voice/extraction/embedded-extractor.ts'
import { createScriptedEngine, type ScriptedEngine } from '../fake/scripted-engine.ts'
import { inTime } from './in-time.ts'
import { newId } from './tenant.ts'

export type Shared = { sql: Sql; bus: Bus; clock: HandClock }
export type CallNode = Awaited<ReturnType<typeof openCallNode>>

export const box = createSecretBox(createSecretKey(randomBytes(32)))
const recordings: RecordingStore = {
  create: () => {
    throw new Error('the leg records, not the actor')
  },
  read: () => Promise.resolve(null),
  remove: () => Promise.resolve('absent'),
}

/** What the nodes of one service have in common. */
export async function openShared(t: Pick<Test, 'teardown'>): Promise<Shared & { databaseDir: string }> {
  const clock = createHandClock()
  const { sql, dataDir: databaseDir } = await openTestDatabase(t)
  const bus = createLocalBus({ log: createQuietLog(), clock })
  t.teardown(() => bus.close())
  return { sql, bus, clock, databaseDir }
}

export async function openCallNode(
  shared: Shared,
  hook: (question: WorkerRequestData) => Promise<WorkerRequestResult> = async () => ({ kind: 'none' }),
  over: {
    readonly engine?: ScriptedEngine | null
    /** Preferred to the engine. */
    readonly provider?: VoiceEngine
    /** Behind that one. */
    readonly providers?: Readonly<Partial<Record<LlmProvider, VoiceEngine>>>
    readonly refusalOf?: Telephony['refusalOf']
    /** Beside the embedded one. */
    readonly extractor?: Extractor
    /** Of nothing, unless they are given. */
    readonly recordings?: RecordingStore
    readonly nodeId?: NodeId
    /** Without them leases alone tell who is alive. */
    readonly peers?: NodePeers
    /** Keeps steps while the database is away. */
    readonly dataDir?: string
    /** Tells of what dead nodes have left, and of calls that wait for a place. Without it this looks for them by itself. */
    readonly dueWatch?: DueWatch
  } = {},
) {
  const { sql, bus, clock } = shared
  const log = createQuietLog()
  const nodeId = over.nodeId ?? newId<'node'>()
  const engine = over.engine ?? createScriptedEngine()
  const extractors = { embedded: createEmbeddedExtractor(), model: over.extractor ?? null }
  const asked: WorkerRequestData[] = []
  const deps = {
    ...shared,
    log,
    nodeId,
    newId,
    box,
    engines: new Map<LlmProvider, VoiceEngine>([
      ...(over.provider ? ([['voice_provider_a', over.provider]] as const) : []),
      ...(Object.entries(over.providers ?? {}) as [LlmProvider, VoiceEngine][]),
      ...(over.engine === null ? [] : ([['embedded', engine]] as const)),
    ]),
    askWorkerRequest: async (_: CallId, question: () => Promise<WorkerRequestData>) => {
      const data = await question()
      asked.push(data)
      return hook(data)
    },
    wakeDeliveries: () => {},
    wakeJobs: () => scheduler.wake(),
    wakeDispatcher: () => dispatcher.wake(),
    refusalOf: over.refusalOf ?? (async () => null),
    ...(over.dueWatch && { dueWatch: over.dueWatch }),
  }
  const sender = createWebhookSender({ allowHosts: ['127.0.0.1'], log, clock: { ...systemClock, now: clock.now } })
  const tools: Toolbox = {
    list: (...given) => toolbox.list(...given),
    call: (...given) => toolbox.call(...given),
  }
  const folder = over.dataDir === undefined ? null : journalFolderOf(over.dataDir)
  const journal = folder !== null && {
    journal: createJournalFolder({ folder, nodeId, limit: 16 << 20, reserve: 0, log }),
  }
  const switchboard = createSwitchboard({ ...deps, tools, ...(over.peers && { peers: over.peers }), ...journal })
  const knowledge = createKnowledge({ sql, embedder: lexicalEmbedder, maxBytes: 1_000_000, log })
  const toolbox = createToolbox({ ...deps, sender, router: switchboard, email: null, knowledge })
  const scheduler = createScheduler({
    sql,
    clock,
    nodeId,
    log,
    work: {
      expire_token: expireTokenWork({ sql, clock, router: switchboard }),
      post_process: createPostProcessing({
        sql,
        router: switchboard,
        recordings: over.recordings ?? recordings,
        extractors,
        log,
      }),
      dial_time: dialTimeWork({ ...deps, router: switchboard }),
      dial: dialWork({ sql, router: switchboard }),
    },
  })
  const dispatcher = createDispatcher(deps)
  await switchboard.start()
  return {
    nodeId,
    log,
    engine,
    asked,
    switchboard,
    scheduler,
    dispatcher,
    createWebCall: createWebCallCreator(deps),
    createPhoneCall: createPhoneCallCreator(deps),
    endCall: createEndCall({ sql, router: switchboard }),
    pauseRecording: createPauseRecording({ sql, router: switchboard }),
    admission: createAdmission({ sql, clock, router: switchboard }),
    bus,
    /** Dies without a word: calls stay as they are. */
    async die() {
      await dispatcher.close()
      await scheduler.close()
      await sender.close()
      // The system ends the socket of a process that dies.
      if (folder !== null) await rm(path.join(folder, `${nodeId}.sock`), { force: true })
    },
    async close() {
      await dispatcher.close()
      await scheduler.close()
      await switchboard.close(0)
      await sender.close()
    },
  }
}

/** Messages for the browser of one call, and a wait for the first that fits, of a minute at most. */
export function listen(bus: Bus, callId: CallId) {
  const messages: ServerMessage[] = []
  let notice = () => {}
  const subscription = bus.subscribe(subjectsOf(callId).signal, ({ payload }) => {
    messages.push(JSON.parse(new TextDecoder().decode(payload)) as ServerMessage)
    notice()
  })
  return {
    messages,
    close: () => subscription.close(),
    until(fits: (message: ServerMessage) => boolean): Promise<void> {
      const told = async (): Promise<void> => {
        while (!messages.some(fits)) await new Promise<void>((resolve) => (notice = resolve))
      }
      return inTime('a message for the browser', told(), () => messages)
    },
  }
}
export const status = (wanted: string) => (message: ServerMessage) =>
  message.type === 'status' && message.status === wanted
