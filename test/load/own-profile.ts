/**
 * Owns the CPU profile of this process, thread by thread, by the inspector: the main thread, and each worker that is there when it begins. The
 * profiler costs something itself (docs/performance.md).
 */
import { Session, type Profiler } from 'node:inspector/promises'
import path from 'node:path'
import { timeByStage, type StageTime } from './read-profile.ts'

export type ThreadProfile = {
  readonly thread: string
  readonly stages: readonly (Omit<StageTime, 'functions'> & {
    readonly functions: readonly (readonly [string, number])[]
  })[]
}

/** µs. */
const samplingInterval = 500
const shownFunctions = 3
const root = path.resolve(import.meta.dirname, '../..')

/** The result ends it. */
export async function startProfile(): Promise<() => Promise<ThreadProfile[]>> {
  const session = new Session()
  session.connect()
  await session.post('Profiler.enable')
  await session.post('Profiler.setSamplingInterval', { interval: samplingInterval })
  const workers = await profileWorkers(session)
  await session.post('Profiler.start')
  return async () => {
    const { profile } = await session.post('Profiler.stop')
    const others = await workers.stop()
    session.disconnect()
    return [toThread('main', profile), ...others.map(({ thread, profile }) => toThread(thread, profile))]
  }
}

function toThread(thread: string, profile: Profiler.Profile): ThreadProfile {
  const stages = timeByStage(profile, root).map((stage) => ({
    ...stage,
    functions: [...stage.functions].toSorted(([, one], [, other]) => other - one).slice(0, shownFunctions),
  }))
  return { thread, stages }
}

type Answer = { readonly id: number; readonly result: { readonly profile?: Profiler.Profile } }
type Worker = { readonly sessionId: string; readonly title: string }

/** The inspector of a worker is spoken to through that of the main thread. */
async function profileWorkers(session: Session) {
  const workers: Worker[] = []
  const waiting = new Map<string, (answer: Answer) => void>()
  let asked = 0
  const ask = (sessionId: string, method: string, params: object = {}): Promise<Answer> => {
    const id = ++asked
    const answered = new Promise<Answer>((resolve) => waiting.set(`${sessionId} ${id}`, resolve))
    void session.post('NodeWorker.sendMessageToWorker', { sessionId, message: JSON.stringify({ id, method, params }) })
    return answered
  }
  session.on('NodeWorker.attachedToWorker', ({ params }) =>
    workers.push({ sessionId: params.sessionId, title: params.workerInfo.title }),
  )
  session.on('NodeWorker.receivedMessageFromWorker', ({ params }) => {
    const answer = JSON.parse(params.message) as Answer
    waiting.get(`${params.sessionId} ${answer.id}`)?.(answer)
  })
  await session.post('NodeWorker.enable', { waitForDebuggerOnStart: false })
  for (const { sessionId } of workers) {
    await ask(sessionId, 'Profiler.enable')
    await ask(sessionId, 'Profiler.setSamplingInterval', { interval: samplingInterval })
    await ask(sessionId, 'Profiler.start')
  }
  return {
    async stop(): Promise<{ thread: string; profile: Profiler.Profile }[]> {
      const stopped = await Promise.all(workers.map(async ({ sessionId }) => ask(sessionId, 'Profiler.stop')))
      return workers.flatMap(({ title }, at) => {
        const profile = stopped[at]?.result.profile
        return profile ? [{ thread: title, profile }] : []
      })
    },
  }
}
