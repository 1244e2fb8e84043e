/** Owns what a caller can say in any turn, and the answers of a question: phrases in English with their meanings. */
/** One answer to a question. `value` is what is noted, `name` is how it is read out and written in conditions. */
export type Choice = {
  readonly value: string | boolean
  readonly name: string
  readonly phrases: readonly string[]
}

/** `nod` says "go on, I am listening", and means something only where nothing is asked. */
export type Request = 'yes' | 'no' | 'nod' | 'hello' | 'repeat' | 'help' | 'stop' | 'goodbye' | 'person'
export type Meaning =
  | { readonly kind: 'choice'; readonly index: number }
  | { readonly kind: 'request'; readonly request: Request }
  | { readonly kind: 'intent'; readonly index: number }
  /** `spoken` is what is read back; `isAlike`: words that sound like these are another value. */
  | { readonly kind: 'value'; readonly value: string | number; readonly spoken: string; readonly isAlike?: boolean }
  | { readonly kind: 'free'; readonly text: string }

/** One way to say something, and what it means. */
export type Phrase<Meaning> = { readonly text: string; readonly meaning: Meaning }

export const affirmative: readonly string[] = [
  'yes',
  'yeah',
  'yep',
  'yes i do',
  'yes i would',
  'sure',
  'okay',
  'of course',
  'correct',
  "that's right",
  'absolutely',
]
export const negative: readonly string[] = [
  'no',
  'nope',
  'no thanks',
  'no thank you',
  "no i don't",
  'not really',
  "i don't think so",
  'not now',
]

const requests: Readonly<Record<Request, readonly string[]>> = {
  yes: affirmative,
  no: negative,
  nod: [],
  hello: ['hello', 'hello there', 'hi', 'good morning', 'good afternoon', 'good evening'],
  repeat: ['repeat', 'repeat that', 'please repeat that', 'say that again', 'say it again', 'pardon', 'once more'],
  help: ['help', 'help me', 'what are my options'],
  stop: ['stop', 'please stop', 'stop it', 'stop talking', 'stop please', 'be quiet'],
  goodbye: ['goodbye', 'good bye', 'bye', 'bye bye', 'hang up'],
  person: [
    'speak to a person',
    'talk to a person',
    'speak to a human',
    'talk to a human',
    'speak to someone',
    'talk to someone',
    'operator',
  ],
}

const nods: readonly string[] = [
  'uh huh',
  'uh-huh',
  'mhm',
  'mm',
  'mm hmm',
  'hmm',
  'i see',
  'right',
  'all right',
  'oh okay',
  'oh i see',
  'oh right',
  'okay okay',
  'yeah yeah',
  'got it',
  'i know',
  'good',
  'great',
]

/** What only who listens says. */
export const nodPhrases = (): Phrase<Meaning>[] =>
  nods.map((text) => ({ text, meaning: { kind: 'request', request: 'nod' } }))

/** The answers first, so that they win where a phrase is both. */
export function phrasesOf(choices: readonly Choice[]): Phrase<Meaning>[] {
  const answers = choices.flatMap((choice, index) =>
    choice.phrases.map((text): Phrase<Meaning> => ({ text, meaning: { kind: 'choice', index } })),
  )
  const always = Object.entries(requests).flatMap(([request, texts]) =>
    texts.map((text): Phrase<Meaning> => ({ text, meaning: { kind: 'request', request: request as Request } })),
  )
  return [...answers, ...always]
}
