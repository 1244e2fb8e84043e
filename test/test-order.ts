/**
 * Owns in which order test files run, and which beside each other: the longest first, so that none is left alone at the end, and what computes beside
 * what waits for speech and timers, which goes first where both want a processor.
 */

/** Who speaks, rings or waits in real time. The others compute, and wait for a database. */
const waitingFolders = ['contract', 'console', 'flows', 'gateway', 'sdk', 'sip', 'tools', 'webhooks']
const waitingFiles = ['cascade', 'gemini-live', 'openai-realtime'].map((name) => `test/voice/${name}.test.ts`)

export const waits = (file: string): boolean =>
  waitingFolders.some((folder) => file.startsWith(`test/${folder}/`)) || waitingFiles.includes(file)

/** Those of over twenty seconds, the longest first. A file that is not named here runs behind them, which costs little. */
export const longest: readonly string[] = [
  'flows/browser-moves',
  'flows/phone-nodes',
  'flows/roles',
  'flows/browser-loss',
  'flows/web-nodes',
  'tools/demo',
  'flows/chaos',
  'flows/engine-calls-web',
  'tools/start-failures',
  'flows/engine-calls-phone',
  'tools/backup',
  'voice/embedded-ear',
  'voice/embedded-hearing',
  'flows/engine-failures',
  'flows/browser-call',
  'flows/database-away',
  'contract/uws-under-newer-libc',
  'console/pages',
  'flows/simulate',
  'flows/process-end',
  'tools/start',
  'store/scale',
  'contract/voice-engine-openai-realtime',
  'actors/kept-steps',
  'actors/recording-keeping',
  'contract/voice-engine-embedded',
  'flows/last-words',
  'console/console',
  'flows/rest-client',
  'mcp/abuse-random',
  'flows/media-threads',
  'flows/kamailio',
  'voice/embedded-calls',
  'flows/backup',
  'flows/overload',
  'voice/openai-realtime',
  'tools/admin',
  'flows/supervision',
].map((name) => `test/${name}.test.ts`)

export type Lanes = {
  /** Files at a time. */
  readonly all: number
  /** Of them such as wait: while there are others, and when there are none any more. */
  readonly waiting: number
  readonly waitingAlone: number
}

export type Turn = { readonly file: string; readonly yields: boolean; done(): void }

/** `next` is null when there is nothing for one more lane, now and later. */
export function createTurns(files: readonly string[], { waiting, waitingAlone }: Lanes) {
  const rank = (file: string): number => (longest.includes(file) ? longest.indexOf(file) : longest.length)
  const inOrder = files.toSorted((one, other) => rank(one) - rank(other) || one.localeCompare(other, 'en'))
  const [waitingFirst, computing] = [inOrder.filter(waits), inOrder.filter((file) => !waits(file))]
  let underWay = 0

  return {
    next(): Turn | null {
      const most = computing.length > 0 ? waiting : waitingAlone
      const file = underWay < most ? waitingFirst.shift() : undefined
      if (file !== undefined) {
        underWay++
        return { file, yields: false, done: () => void underWay-- }
      }
      const other = computing.shift()
      return other === undefined ? null : { file: other, yields: true, done: () => undefined }
    },
  }
}
