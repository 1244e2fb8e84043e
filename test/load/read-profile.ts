/**
 * Owns what is read from a CPU profile of V8: the time that each stage took by itself. A stage is a part of the service, told by the file of a
 * function; what has no file of its own (WebAssembly, builtins, parts of Node) counts for whoever called it.
 */

/** Of the inspector's domain `Profiler`: what is used of it. Times in µs. */
export type CpuProfile = {
  readonly nodes: readonly ProfileNode[]
  readonly samples?: readonly number[] | undefined
  readonly timeDeltas?: readonly number[] | undefined
}
type ProfileNode = {
  readonly id: number
  readonly callFrame: { readonly functionName: string; readonly url: string; readonly lineNumber: number }
  readonly children?: readonly number[] | undefined
}

/** `functions`: those that took most of it, with their ms. */
export type StageTime = { readonly stage: string; readonly ms: number; readonly functions: ReadonlyMap<string, number> }

export const idle = '(idle)'
const native = 'native code and kernel'

/** What V8 and the kernel do has no file. */
const namedParts: Readonly<Record<string, string>> = {
  '(idle)': idle,
  '(program)': native,
  '(root)': native,
  '(garbage collector)': 'GC',
}

/** The first that fits a path, which begins in this project's folder or with the name of a package. */
const stages: readonly (readonly [RegExp, string])[] = [
  [/^test\/load\/own-profile/, 'profiler'],
  [/^test\/load\/(?:phone-engine|echo-engine)|^voice\//, 'voice engine'],
  [/^test\/load\//, 'bench'],
  [/^media\/pcm\/resample|halfband|half-band/, 'resample'],
  [/^media\/recording\/|^store\/recording/, 'recording'],
  [/^media\/vad\//, 'voice activity'],
  [/^media\/codecs\/(?:opus|encoder|decoder)|@evan\/opus/, 'Opus'],
  [/^media\/codecs\//, 'G.711, G.722'],
  [/srtp/, 'SRTP'],
  [/^media\/rtp\/(?:jitter|arrival|incoming|newest|stream-splice)/, 'jitter buffer'],
  [/^media\/rtp\/rtcp\//, 'RTCP'],
  [/^media\/rtp\//, 'RTP endpoint'],
  // What a thread does there is to sleep.
  [/^media\/ticker\/slot-sleep/, idle],
  [/^media\/ticker\//, 'ticker'],
  [/^media\/leg\/(?:outgoing|pacer|packetizer|frame-queue|even-pace)/, 'playout'],
  [/^media\//, 'leg'],
  [/^gateway\/werift\/|werift|^net\/stun/, 'WebRTC'],
  [/^gateway\/|^node_modules\/ws|uWebSockets/, 'signaling socket'],
  [/^sip\/|drachtio/, 'SIP'],
  [/^actors\/bus\/|nats/, 'bus'],
  [/^actors\/conversation\//, 'conversation'],
  [/^actors\/call\/machine\/|xstate/, 'machine'],
  [/^actors\/webhooks\/|undici/, 'webhooks'],
  [/^actors\//, 'actors'],
  [/^store\/|^node_modules\/postgres\//, 'SQL'],
  [/^api\/|^mcp\/|hono|zod/, 'API and schemas'],
  [/^model\//, 'model'],
  [/pino|^app\/log/, 'log'],
  [/^node:(?:internal\/)?dgram/, 'UDP of Node'],
  [/^node:(?:internal\/)?(?:timers|process\/task_queues|async_hooks)/, 'timers and promises of Node'],
  [/^node:(?:internal\/)?(?:fs|file)/, 'files of Node'],
  // Whatever stands between them and who sends, such as the count of statements, has not written.
  [/^node:(?:internal\/)?(?:net|stream_base_commons|tls)/, 'sockets of Node'],
]

/** `root`: the project's folder, as it stands in the URLs of its functions. */
export function timeByStage({ nodes, samples = [], timeDeltas = [] }: CpuProfile, root: string): StageTime[] {
  const byId = new Map(nodes.map((node) => [node.id, node]))
  const parents = new Map(nodes.flatMap(({ id, children = [] }) => children.map((child) => [child, id] as const)))
  const known = new Map<number, string>()
  const stageOf = (id: number): string => {
    const stage = known.get(id) ?? ownStage(byId.get(id), root) ?? callersStage(parents.get(id))
    known.set(id, stage)
    return stage
  }
  const callersStage = (parent: number | undefined): string => (parent === undefined ? native : stageOf(parent))
  const times = new Map<string, { ms: number; functions: Map<string, number> }>()
  for (const [at, id] of samples.entries()) {
    const ms = (timeDeltas[at] ?? 0) / 1000
    const stage = stageOf(id)
    const time = times.get(stage) ?? { ms: 0, functions: new Map<string, number>() }
    const name = nameOf(byId.get(id), root)
    time.ms += ms
    time.functions.set(name, (time.functions.get(name) ?? 0) + ms)
    times.set(stage, time)
  }
  return [...times].map(([stage, time]) => ({ stage, ...time })).toSorted((one, other) => other.ms - one.ms)
}

/** Null: it counts for its caller. */
function ownStage(node: ProfileNode | undefined, root: string): string | null {
  if (!node) return native
  const { functionName, url } = node.callFrame
  const part = url === '' ? namedParts[functionName] : undefined
  if (part !== undefined) return part
  if (url === '' || url.startsWith('wasm:')) return null
  const file = fileOf(url, root)
  return (
    stages.find(([fits]) => fits.test(file))?.[1] ?? (file.startsWith('node:') ? null : (file.split('/')[0] ?? file))
  )
}

/** Of a module within `node_modules`: its path there. */
function fileOf(url: string, root: string): string {
  const file = url.replace(/^file:\/\//, '')
  const modules = file.lastIndexOf('/node_modules/')
  if (modules >= 0) return file.slice(modules + 1)
  return file.startsWith(`${root}/`) ? file.slice(root.length + 1) : file
}

function nameOf(node: ProfileNode | undefined, root: string): string {
  if (!node) return native
  const { functionName, url, lineNumber } = node.callFrame
  if (url === '') return functionName
  return `${functionName || 'anonymous'} ${fileOf(url, root)}:${lineNumber + 1}`
}
