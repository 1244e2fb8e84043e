/**
 * Owns one simulated world from its beginning to its end: several processes of the service on one database and one bus, an edge with callers, a
 * receiver of webhooks, and what goes wrong, as a plan says. The same plan gives the same world, step by step.
 */
import type { CallId, NewId, WorkerId } from '../../model/ids.ts'
import type { InboundCall } from '../../model/telephony.ts'
import type { Log } from '../../model/log.ts'
import { Problem } from '../../model/problem.ts'
import type { Toolbox } from '../../model/tool.ts'
import { createRandom } from '../fake/random.ts'
import { findViolations, type Seen } from './invariants.ts'
import { createLoop, type Process } from './loop.ts'
import type { Fault, Plan, PlannedCall } from './plan.ts'
import { createReceiver } from './receiver.ts'
import { createSimulatedBus } from './simulated-bus.ts'
import { createSimulatedDatabase } from './simulated-database.ts'
import { createSimulatedDisk } from './simulated-disk.ts'
import { createSimulatedEdge, type Callee, type Done } from './simulated-edge.ts'
import { createSimulatedEngine, toolName } from './simulated-engine.ts'
import { openSimulatedNode, type SimulatedNode } from './simulated-node.ts'
import type { Stage } from './stage.ts'

export type Outcome = {
  readonly plan: Plan
  /** Sentences; none: all is well. */
  readonly violations: readonly string[]
  /** Of everything that happened, in its order. */
  readonly hash: string
  readonly steps: number
  /** Ms of the world. */
  readonly age: number
  /** What happened, line by line, where it was asked for. */
  readonly notes: readonly string[]
}

/** Every wait of a call and of a delivery is shorter. */
const oldest = 300_000
const closingTime = 60_000
const lookEvery = 1_000
const nobodyKnows: Callee = { lines: 1, toolAt: null, patience: 5_000, answers: 'yes', keys: [], keyPause: 100 }

const numberOf = ({ index }: PlannedCall): string => `+49301000${index}`

export async function simulate(plan: Plan, stage: Stage, keepsNotes = false): Promise<Outcome> {
  const { seed } = plan
  const notes: string[] | null = keepsNotes ? [] : null
  const tenant = await stage.reset(plan.limits)
  const order = createRandom(seed ^ 0x1234567)
  const chance = createRandom(seed ^ 0x7654321)
  const loop = createLoop(order, notes)
  const violations: string[] = []
  const { usual, slowOneOf, slow } = plan.weather
  const delay = (): number => (chance.below(slowOneOf) === 0 ? slow * chance.next() : 0.2 + usual * chance.next())
  const weather = { delay }
  const database = createSimulatedDatabase(loop, stage.sessions, chance, weather)
  const bus = createSimulatedBus(loop, chance, weather)
  const receiver = createReceiver(loop, chance, { failsOneOf: plan.failsOneOf, delay })

  let uniques = 0
  const unique = (): number => ++uniques
  /** In order by the clock of the process, as UUIDv7 are. */
  const newIdOf = (process: Process): NewId =>
    (() => {
      const at = process.clock.now().toString(16).padStart(12, '0')
      const count = unique().toString(16).padStart(12, '0')
      return `${at.slice(0, 8)}-${at.slice(8)}-7000-8000-${count}`
    }) as NewId
  const talks = new Map<string, Callee>()
  const talkOf = (callId: string): Callee => talks.get(callId) ?? nobodyKnows
  const done = new Map<string, Done[]>()
  const seen: Seen = {
    tools: new Map(),
    asked: new Map(),
    rang: new Map(),
    jobs: new Map(),
    errors: [],
    overbooked: [],
    aside: [],
    done,
  }
  const count = (of: Map<string, number>, key: string): void => void of.set(key, (of.get(key) ?? 0) + 1)

  const logOf = (process: Process): Log => {
    const tell =
      (level: string) =>
      (message: string, fields: object = {}): void => {
        const { error } = fields as { error?: unknown }
        const words = `${message}${error instanceof Error ? `: ${error.message}` : ''}`
        loop.note(`${level} ${process.name} ${words}`)
        if (level === 'error') seen.errors.push(words)
      }
    const silent = (): void => undefined
    const log: Log = { debug: silent, info: silent, warn: tell('warn'), error: tell('error'), with: () => log }
    return log
  }
  const toolsOf = (process: Process): Toolbox => ({
    list: () =>
      Promise.resolve([
        {
          name: toolName,
          provider: 'external',
          description: 'Looks something up.',
          inputSchema: { type: 'object', properties: {}, required: [] },
          capabilityKey: `external.${toolName}`,
        },
      ]),
    async call(_account, _worker, { phoneCallId, arguments: given }, { committed, toolCallId = '', announce } = {}) {
      await committed
      if (!(await announce?.({ toolCallId, name: toolName, arguments: given })))
        return { status: 'error', error: { code: 'CALL_NOT_ACTIVE', message: 'The call is over.' } }
      count(seen.tools, phoneCallId ?? '')
      count(seen.asked, toolCallId)
      loop.note(`tool ${process.name} runs`)
      await new Promise<void>((resolve) => void process.clock.after(300, resolve))
      return { status: 'success', data: {} }
    },
  })

  // Processes. A slot keeps its number when another process takes the place of a dead one.
  type Slot = { process: Process; node: SimulatedNode | null; starts: number; steps: number }
  const slots: Slot[] = []
  const disks = Array.from({ length: plan.nodes }, (_, index) =>
    createSimulatedDisk(loop, `disk${index}`, weather, (line) => void seen.aside.push(line)),
  )
  const openNode = (index: number): void => {
    const slot = slots[index]
    const starts = (slot?.starts ?? 0) + 1
    const process = loop.openProcess(`node${index}.${starts}`)
    const own: Slot = { process, node: null, starts, steps: slot?.steps ?? 0 }
    slots[index] = own
    loop.happen(process, `${process.name} turn`, 0, `${process.name} starts`, () => {
      own.node = openSimulatedNode({
        process,
        sql: database.sqlOf(process),
        bus: bus.busOf(process),
        log: logOf(process),
        newId: newIdOf(process),
        engine: createSimulatedEngine({ clock: process.clock, talkOf, unique, opensIn: () => 20 + chance.below(200) }),
        tools: toolsOf(process),
        sender: receiver.senderOf(process),
        journal: disks[index]!.folderOf(process),
        hasBeats: plan.hasBeats,
        now: loop.now,
        random: () => chance.next(),
        didJob: ({ id }) => count(seen.jobs, id),
      })
      own.node.start().catch((error: unknown) => {
        loop.note(`${process.name} did not start: ${String(error)}`)
        // As the program does that cannot start: it ends, and is started again.
        void crash(index, 1_000)
      })
    })
  }
  const crash = async (index: number, downFor: number): Promise<void> => {
    const { process } = slots[index]!
    if (process.isDead) return
    loop.note(`${process.name} is killed`)
    process.kill()
    bus.leave(process)
    loop.happen(null, 'world', 0, `connections of ${process.name} end`, () => database.cut(process))
    loop.happen(null, `world ${index}`, downFor, `another process takes the place of ${process.name}`, () =>
      openNode(index),
    )
  }
  let isClosing = false
  const stop = (index: number, downFor: number): void => {
    const { process, node } = slots[index]!
    if (process.isDead || !node) return
    const left = (): void => {
      if (process.isDead || isClosing) return
      process.kill()
      bus.leave(process)
      loop.happen(null, 'world', 0, `connections of ${process.name} end`, () => database.cut(process))
      loop.happen(null, `world ${index}`, downFor, 'another process begins', () => openNode(index))
    }
    loop.happen(process, `${process.name} turn`, 0, `${process.name} is stopped`, () => {
      node
        .close(5_000, 2_000)
        .then(left, (error: unknown) => violations.push(`a node could not be stopped: ${String(error)}`))
    })
  }
  const strike = (fault: Fault): void => {
    loop.note(`fault ${JSON.stringify(fault)}`)
    if (fault.kind === 'databaseLeap') return database.leap(fault.ms)
    if (fault.kind === 'edgeCrash') return crashEdge(fault.downFor)
    const { process } = slots[fault.node]!
    switch (fault.kind) {
      case 'crash':
        return void crash(fault.node, fault.downFor)
      case 'stop':
        return stop(fault.node, fault.downFor)
      case 'freeze':
        return process.freeze(fault.ms)
      case 'leap':
        return process.leap(fault.ms)
      case 'cutDatabase':
        loop.happen(null, 'world', 0, 'connections end', () => database.cut(process))
        return
      case 'databaseAway':
        loop.happen(null, 'world', 0, 'the database is away', () => database.away(process, fault.ms))
        return
      case 'loseCommits':
        return database.loseCommits(process, fault.ms)
      case 'cutBus':
        return bus.cut(process, fault.ms)
      case 'dropMessages':
        return bus.drop(process, fault.ms, fault.oneOf)
    }
  }
  const waiting = new Set(plan.faults)
  loop.watch((process) => {
    const index = slots.findIndex((slot) => slot.process === process)
    const slot = slots[index]
    if (!slot) return
    slot.steps++
    for (const fault of waiting)
      if (!isClosing && 'node' in fault && fault.node === index && slot.steps >= fault.step) {
        waiting.delete(fault)
        strike(fault)
      }
  })
  for (const fault of plan.faults)
    if ('at' in fault)
      loop.happen(null, `world fault ${fault.at}`, fault.at, 'a fault', () => {
        waiting.delete(fault)
        strike(fault)
      })

  // The edge and who calls.
  let edges = 0
  let edgeProcess = loop.openProcess('edge.0')
  let edge: ReturnType<typeof createSimulatedEdge> | null = null
  const openEdge = (): void => {
    const process = loop.openProcess(`edge.${++edges}`)
    edgeProcess = process
    loop.happen(process, `${process.name} turn`, 0, `${process.name} starts`, () => {
      const own = { sql: database.sqlOf(process), bus: bus.busOf(process), log: logOf(process) }
      edge = createSimulatedEdge({
        ...own,
        process,
        telephony: stage.telephonyOf({ ...own, clock: process.clock, newId: newIdOf(process) }),
        talkOf,
        talkOfNumber: (number) => plan.calls.find((call) => numberOf(call) === number) ?? nobodyKnows,
        begins: (callId, talk) => void talks.set(callId, talk),
        did(callId, what) {
          done.set(callId, [...(done.get(callId) ?? []), what])
          loop.note(`caller ${callId} ${typeof what === 'number' ? `says ${what}` : `does ${what}`}`)
        },
        rang: (callId) => count(seen.rang, callId),
        refused: (_callId, command, fence) =>
          loop.note(`leg refuses ${command.type} of ${command.epoch}, has ${fence}`),
      })
    })
  }
  /** With all its legs; another one knows nothing of them. */
  const crashEdge = (downFor: number): void => {
    const process = edgeProcess
    if (process.isDead) return
    process.kill()
    bus.leave(process)
    loop.happen(null, 'world', 0, `connections of ${process.name} end`, () => database.cut(process))
    loop.happen(null, 'world edge', downFor, 'another edge begins', openEdge)
  }
  openEdge()
  for (let index = 0; index < plan.nodes; index++) openNode(index)

  /** One that is up, another one each time. */
  const someNode = (): SimulatedNode | null => {
    const up = slots.flatMap(({ process, node }) => (process.isDead || !node ? [] : [node]))
    return up.length === 0 ? null : chance.pick(up)
  }
  /** Questions without an answer. Who died does not answer any more. */
  const underWay = new Set<{ process: Process | null }>()
  const isWaitedFor = (): boolean => [...underWay].some(({ process }) => !process?.isDead)
  /** Somebody asks a node; who gets no answer, or a refusal, gives up. */
  const ask = (ms: number, label: string, act: (node: SimulatedNode) => Promise<unknown>, tries = 20): void => {
    const question = { process: null as Process | null }
    underWay.add(question)
    loop.happen(null, `client ${label}`, ms, `client ${label}`, () => {
      const node = someNode()
      if (!node) {
        underWay.delete(question)
        return tries > 0 ? ask(500, label, act, tries - 1) : undefined
      }
      const { process } = node
      question.process = process
      loop.happen(process, `client ${label} ${process.name}`, 0, `${process.name} is asked: ${label}`, () => {
        const refused = (error: unknown): void =>
          loop.note(`${process.name} refuses ${label}: ${error instanceof Error ? error.message : String(error)}`)
        void act(node)
          .catch(refused)
          .finally(() => underWay.delete(question))
      })
    })
  }
  const { accountId, workerId, trunk } = tenant
  const born = (call: PlannedCall, callId: CallId): void => {
    talks.set(callId, call)
    if (call.endedIn !== null)
      ask(call.endedIn, `ends ${call.index}`, ({ endCall }) =>
        endCall.cancel(accountId, callId).catch(() => endCall.hangUp(accountId, callId)),
      )
  }
  for (const call of plan.calls) {
    const { index, kind, at } = call
    if (kind === 'outbound')
      ask(at, `calls ${index}`, async ({ createPhoneCall, process }) => {
        const scheduledAt =
          call.scheduledIn === null
            ? {}
            : { scheduledAt: new Date(process.clock.now() + call.scheduledIn).toISOString() }
        const { id } = await createPhoneCall(accountId, { workerId, phoneNumber: numberOf(call), ...scheduledAt }, null)
        born(call, id as CallId)
      })
    if (kind === 'web')
      ask(at, `visits ${index}`, async ({ createWebCall }) => {
        const { callId, token } = await createWebCall(accountId, { workerId })
        born(call, callId as CallId)
        ask(100, `joins ${index}`, async ({ admission }) => {
          const admitted = await admission.admit(token, null)
          if (admitted instanceof Problem) throw admitted
          loop.happen(edgeProcess, `${edgeProcess.name} turn`, 50, `edge makes the leg of ${index}`, () => {
            const leg = edge!.createLeg(callId as CallId)
            edgeProcess.clock.after(100, () => leg.connect())
          })
        })
      })
    if (kind === 'inbound')
      ask(at, `rings ${index}`, async ({ telephony, process }) => {
        const route = { trunk, workerId: workerId as WorkerId, toNumber: '+4930100', mustAuthenticate: false }
        const arrival: InboundCall = { route, address: '127.0.0.1', fromNumber: numberOf(call) }
        const received = await telephony.receive(arrival)
        if (!('callId' in received)) throw new Error(received.reason)
        const { callId } = received
        born(call, callId)
        loop.happen(edgeProcess, `${edgeProcess.name} turn`, 5, `edge makes the leg of ${index}`, () => {
          edge!.createLeg(callId)
          loop.happen(process, `client begins ${index}`, 5, `${process.name} begins ${index}`, () => {
            telephony.begin(callId).catch(() => undefined)
          })
        })
      })
  }

  const linesOnDisks = (): number => disks.reduce((count, disk) => count + disk.lines(), 0)

  // Is it over?
  let isOver = false
  const look = (): void => {
    loop.happen(null, 'world look', lookEvery, 'look', async () => {
      seen.overbooked.push(...(await stage.overbooked(plan.limits)))
      const areUp = !edgeProcess.isDead && slots.every(({ process, node }) => !process.isDead && node)
      // Steps that another node has overtaken are put aside by the process whose they are, when it has its database again.
      const isAtRest = !isWaitedFor() && areUp && linesOnDisks() === 0 && loop.now() > 4_000
      if (isAtRest && (await stage.isQuiet())) isOver = true
      else look()
    })
  }
  look()
  const complain = (error: unknown): void => {
    violations.push(
      `nobody waits for a failure: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`,
    )
  }
  process.on('unhandledRejection', complain)
  try {
    const ended = await loop.run({ isOver: () => isOver, age: oldest })
    if (ended !== 'over') violations.push(`the world does not come to rest (${ended}): ${await stage.whatIsLeft()}`)
    isClosing = true
    for (const { process, node } of slots)
      if (node && !process.isDead)
        loop.happen(process, `${process.name} turn`, 0, `${process.name} closes`, () => {
          node.close(0, 0).catch((error: unknown) => violations.push(`a node could not be closed: ${String(error)}`))
        })
    loop.happen(edgeProcess, `${edgeProcess.name} turn`, 0, 'edge closes', () => edge?.close())
    await loop.run({ isOver: () => false, age: loop.now() + closingTime })
    for (const { process } of [...slots, { process: edgeProcess }]) {
      const [timers, subscriptions] = [process.pending(), process === edgeProcess ? 0 : bus.left(process)]
      if (timers > 0) violations.push(`${process.name} leaves ${timers} timers behind`)
      if (subscriptions > 0 && !process.isDead)
        violations.push(`${process.name} leaves ${subscriptions} subscriptions behind`)
    }
    const kept = linesOnDisks()
    if (kept > 0) violations.push(`${kept} steps are on disks and nobody needs them`)
    await database.close()
    violations.push(...(await findViolations(stage.sql, plan, seen, receiver.taken)))
  } finally {
    process.removeListener('unhandledRejection', complain)
    loop.close()
  }
  return { plan, violations, hash: loop.hash(), steps: loop.steps, age: loop.now(), notes: notes ?? [] }
}
