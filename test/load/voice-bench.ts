/**
 * Owns `npm run bench voice [recognition | embedded | hosted | tools | ear]`: how well the embedded engine understands, how long callers wait for each engine and
 * for its silence, what the service adds to a hosted one, and what a call with each of them costs. The aims stand beside the figures.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { benchEar } from './ear-bench.ts'
import { forkProcess, type ForkedProcess } from './forked-process.ts'
import type { ProviderName, ProviderReady, ProviderTake } from './process-playing-provider.ts'
import { printTable, quantile } from './table.ts'
import { measureRecognition, type Count, type RecognitionRow } from './voice-recognition.ts'
import { openVoiceLine, type VoiceLine, type VoiceRow } from './voice-row.ts'
import { benchScript, scriptedAnswers } from './voice-script.ts'

type Cells = Record<string, string>
/** What one engine came to, row by row. */
type Measured = { readonly name: string; readonly rows: readonly VoiceRow[] }

/** Of a row whose waits are measured, and of one that tells only what it costs. */
const talkMs = 20_000
const costMs = 6_000
const toolsMs = 8_000
const costCounts = [1, 10, 50]
const toolCounts = [10, 50]
/** One recognition thread understands about so many at once. */
const grammarCounts = [1, 4, 10]
const providers: readonly ProviderName[] = ['OpenAI Realtime', 'Gemini Live', 'cascade']

const sections: Readonly<Record<string, () => Promise<void>>> = {
  recognition: benchRecognition,
  embedded: benchEmbedded,
  hosted: benchHosted,
  tools: benchTools,
  ear: benchEar,
}

export async function benchVoice([only]: readonly string[]): Promise<void> {
  const section = sections[only ?? '']
  if (only !== undefined && !section)
    return console.log(`usage: npm run bench voice [${Object.keys(sections).join(' | ')}]`)
  for (const bench of section ? [section] : [benchRecognition, benchEmbedded, benchHosted]) await bench()
}

async function benchRecognition(): Promise<void> {
  console.log('\nrecognition, three synthetic voices; aims: 95 % of the answers at 16 kHz, 90 % by telephone\n')
  const rows = await measureRecognition()
  printTable([
    ...rows.map((row) => recognitionCells(row.voice, row)),
    ...([16_000, 8000] as const).map((rateHz) => recognitionCells('all', sumOf(rows, rateHz))),
  ])
  const misses = rows.flatMap((row) => row.heldOutMisses.map((miss) => `${row.voice} ${row.rateHz} Hz: ${miss}`))
  if (misses.length > 0) console.log(`\nheld out, not understood:\n${misses.join('\n')}`)
}

type Recognised = Omit<RecognitionRow, 'voice' | 'misses' | 'heldOutMisses'>

function sumOf(rows: readonly RecognitionRow[], rateHz: RecognitionRow['rateHz']): Recognised {
  const some = rows.filter((row) => row.rateHz === rateHz)
  const numberOf = (one: (row: RecognitionRow) => number): number => some.reduce((sum, row) => sum + one(row), 0)
  const countOf = (name: 'answers' | 'heldOut' | 'values' | 'intents' | 'others' | 'words'): Count => ({
    right: numberOf((row) => row[name].right),
    total: numberOf((row) => row[name].total),
  })
  return {
    rateHz,
    answers: countOf('answers'),
    mistaken: numberOf((row) => row.mistaken),
    heldOut: countOf('heldOut'),
    heldOutMistaken: numberOf((row) => row.heldOutMistaken),
    values: countOf('values'),
    misheard: numberOf((row) => row.misheard),
    intents: countOf('intents'),
    others: countOf('others'),
    words: countOf('words'),
  }
}

function recognitionCells(voice: string, row: Recognised): Cells {
  const share = ({ right, total }: Count): string => `${right}/${total} ${((100 * right) / total).toFixed(0)} %`
  return {
    voice,
    line: row.rateHz === 8000 ? 'telephone, 8 kHz' : '16 kHz',
    aim: row.rateHz === 8000 ? '90 %' : '95 %',
    'answers held out': share(row.heldOut),
    'answers tuned with': share(row.answers),
    'taken for others': String(row.mistaken + row.heldOutMistaken),
    values: share(row.values),
    'intents in speech': share(row.intents),
    'others rejected': share(row.others),
    'dictated words': share(row.words),
  }
}

/** By telephone: leg, bus, conversation, engine and back. */
async function benchEmbedded(): Promise<void> {
  console.log('\nembedded engine by telephone: real words, every second time over the agent\n')
  const measured = [await benchGrammarTurns()]
  for (const hearing of ['vad', 'script'] as const) {
    await using closing = new AsyncDisposableStack()
    const line = await openEmbeddedLine(hearing, closing)
    await line.warmUp()
    const rows: VoiceRow[] = []
    for (const count of costCounts) rows.push(await line.measure(count, costMs))
    measured.push({ name: `embedded, ${hearing}`, rows })
  }
  reportCosts(measured)
}

/** The very first call finds nothing prepared: no line has been spoken, no grammar compiled. */
async function benchGrammarTurns(): Promise<Measured> {
  await using closing = new AsyncDisposableStack()
  const line = await openEmbeddedLine('fsg', closing)
  const first = await line.measure(1, talkMs / 2)
  const rows: VoiceRow[] = []
  for (const count of grammarCounts) rows.push(await line.measure(count, talkMs))
  const all = [first, ...rows]
  printTable([
    embeddedCells('1, the first of all', first),
    ...rows.map((row) => embeddedCells(countOf(row), row)),
    embeddedCells('all of them', {
      ...first,
      answers: all.flatMap(({ answers }) => answers),
      silences: all.flatMap(({ silences }) => silences),
      unanswered: all.reduce((sum, { unanswered }) => sum + unanswered, 0),
      late: Math.max(...all.map(({ late }) => late)),
      clientLate: Math.max(...all.map(({ clientLate }) => clientLate)),
    }),
  ])
  return { name: 'embedded, fsg', rows }
}

function openEmbeddedLine(hearing: 'fsg' | 'vad' | 'script', closing: AsyncDisposableStack): Promise<VoiceLine> {
  const wish = { settings: { EMBEDDED_HEARING: hearing }, script: benchScript, hookUrl: null }
  return openVoiceLine(wish, hearing === 'script' ? 'nothing' : { words: scriptedAnswers }, closing)
}

function embeddedCells(calls: string, { answers, silences, unanswered, late, clientLate }: VoiceRow): Cells {
  return {
    calls,
    answers: String(answers.length),
    'end of speech to agent p50/p95 ms': halves(answers),
    aim: '550 / 800',
    interruptions: String(silences.length),
    'onset to silence p50/p95 ms': halves(silences),
    'aim p95': '300',
    unanswered: String(unanswered),
    'late >10 ms %': percent(late),
    'client late %': percent(clientLate),
  }
}

async function benchHosted(): Promise<void> {
  console.log('\nhosted engines by telephone, providers with known delays on this machine: what the service adds\n')
  const measured: Measured[] = []
  const added: Cells[] = []
  for (const name of providers) {
    await using closing = new AsyncDisposableStack()
    const provider = await forkProcess<ProviderReady>('process-playing-provider.ts', [name])
    closing.defer(() => provider.close())
    const { says, delayMs, ...wish } = provider.ready
    const line = await openVoiceLine({ ...wish, script: benchScript }, says, closing)
    await line.warmUp()
    const rows: VoiceRow[] = []
    let take: ProviderTake | null = null
    for (const count of costCounts) {
      const isLast = count === costCounts.at(-1)
      const callTools = async (): Promise<void> => void (take = await tools(provider))
      rows.push(await (isLast ? line.measure(count, talkMs, callTools) : line.measure(count, costMs)))
      added.push(hostedCells(name, rows.at(-1) as VoiceRow, { delayMs, take }))
    }
    measured.push({ name, rows })
  }
  printTable(added)
  console.log(
    '\nan answer: from the packet that ends the turn to the first packet of the agent, less the delay of the provider;' +
      '\nsilence: from the packet that tells the provider of the caller to the last packet of the agent;' +
      '\na tool: from its call to its result at the provider, less what its receiver took',
  )
  reportCosts(measured)
}

/** Only what a tool adds: a few seconds a row, so that two versions of the service can take turns. */
async function benchTools(): Promise<void> {
  console.log(
    '\ntools through hosted engines: from the call to its result at the provider, less what its receiver took\n',
  )
  const cells: Cells[] = []
  for (const name of providers) {
    await using closing = new AsyncDisposableStack()
    const provider = await forkProcess<ProviderReady>('process-playing-provider.ts', [name])
    closing.defer(() => provider.close())
    const { says, delayMs: _, ...wish } = provider.ready
    const line = await openVoiceLine({ ...wish, script: benchScript }, says, closing)
    await line.warmUp()
    for (const count of toolCounts) {
      let take: ProviderTake | null = null
      const row = await line.measure(count, 0, async () => void (take = await tools(provider)))
      cells.push(toolCells(name, row, take ?? { tools: [], complaints: [] }))
    }
  }
  printTable(cells)
}

const toolCells = (engine: string, row: VoiceRow, { tools: added, complaints }: ProviderTake): Cells => ({
  engine,
  calls: countOf(row),
  tools: String(added.length),
  'tool p50/p95 ms': halves(added),
  'aim p95': '20',
  complaints: String(complaints.length),
})

/** From now on the model calls a tool in each turn. */
async function tools(provider: ForkedProcess<ProviderReady>): Promise<ProviderTake> {
  await provider.ask('call tools')
  await pause(toolsMs)
  return provider.ask('take')
}

function hostedCells(
  engine: string,
  row: VoiceRow,
  { delayMs, take }: { readonly delayMs: number; readonly take: ProviderTake | null },
): Cells {
  const { answers, silences, unanswered, late, clientLate } = row
  return {
    engine,
    calls: countOf(row),
    answers: String(answers.length),
    'added p50/p95 ms': halves(answers.map((waited) => waited - delayMs)),
    aim: '25 / 60',
    interruptions: String(silences.length),
    'silence p50/p95 ms': halves(silences),
    'aim p95': '60',
    tools: take === null ? '-' : String(take.tools.length),
    'tool p50/p95 ms': take === null ? '-' : halves(take.tools),
    'aim p95 ': '20',
    unanswered: String(unanswered),
    complaints: take === null ? '-' : String(take.complaints.length),
    'late >10 ms %': percent(late),
    'client late %': percent(clientLate),
  }
}

function reportCosts(measured: readonly Measured[]): void {
  const cells = measured.flatMap(({ name, rows }) =>
    rows.map((row) => ({
      engine: name,
      calls: countOf(row),
      'CPU ms per call-second': row.cpuMsPerCallSecond.toFixed(2),
      'Postgres CPU ms per call-second': row.postgresCpuMsPerCallSecond.toFixed(2),
      'RSS MB per call': (row.rssBytesPerCall / 1e6).toFixed(2),
      'late >10 ms %': percent(row.late),
    })),
  )
  console.log('\nwhat a call costs while caller and agent talk in turns\n')
  printTable(cells)
}

const countOf = ({ count, wanted }: VoiceRow): string => (count === wanted ? String(count) : `${count} of ${wanted}`)
const percent = (share: number): string => (share * 100).toFixed(2)
const halves = (values: readonly number[]): string =>
  values.length === 0 ? '-' : `${quantile(values, 0.5).toFixed(0)} / ${quantile(values, 0.95).toFixed(0)}`
