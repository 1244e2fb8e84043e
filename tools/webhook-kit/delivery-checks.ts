/** Owns the checks of what a receiver must take: every event, again, late, large, unknown, many at once. */
import { longTranscript } from './sample-events.ts'
import type { Check, Stage } from './stage.ts'
import { accepted, allAccepted, bothAccepted, sayOf, type Finding } from './verdicts.ts'

const mebibyte = 1024 * 1024
const atOnce = 20
const within = '2xx within 10 s, better under 1 s'

const mends = {
  duplicate:
    'The same X-Service-Event-Id came twice because the first answer was lost: remember the ids that were handled, and answer 2xx to those without doing anything.',
  late: 'What was given up and is sent again by hand comes after the end of its call: take that too.',
  large:
    'Raise the body limit of the receiver above 1 MiB, and hash the bytes as they are: a long call has much to tell.',
  unknown: 'Answer 2xx to types and fields that are unknown: new ones are added without a new version.',
  text: 'Hash the bytes of the body as they came, before they are decoded, and read them as UTF-8.',
  raw: 'Hash the raw bytes of the body, not JSON that was parsed and written again: white space and escapes would differ.',
  many: 'Several calls are announced at the same time: answer at once and let a queue do the work.',
} as const

/** Everything a JSON writer may do otherwise: white space, escapes that need not be. */
const unusualJsonOf = (event: object): string =>
  `\n${JSON.stringify(event, null, 3).replaceAll('"type"', String.raw`"\u0074ype"`)}\r\n`

const texts = 'Grüße aus Köln – 東京、Ελλάδα, שלום, 👩🏽‍🚀 \u2028 e\u0301 "quoted" \\ </script>'

export const deliveryChecks: readonly Check[] = [
  good('status-update', 'call.status_update', (stage) => stage.call.statusUpdate()),
  good('transcript', 'call.transcript', (stage) => stage.call.transcript('Hello?')),
  good('ended', 'call.ended', (stage) => stage.call.ended()),
  good('tool-call-copy', 'the async copy of call.tool_call', (stage) => stage.call.toolCall()),
  {
    name: 'redirects',
    group: 'deliveries',
    expected: 'no redirect: the service does not follow any',
    run: async (stage) => {
      const answer = await stage.deliver(stage.call.statusUpdate())
      if (answer.kind === 'answered' && (answer.status < 300 || answer.status > 399))
        return { verdict: 'passed', got: sayOf(answer), mend: null }
      return accepted(answer)
    },
  },
  {
    name: 'keep-alive',
    group: 'deliveries',
    expected: 'the connection stays open for the next delivery',
    run: checkKeepAlive,
  },
  {
    name: 'duplicate',
    group: 'deliveries',
    expected: '2xx both times when one event comes twice',
    async run({ call, newEventId, deliver }) {
      const [event, eventId] = [call.ended(), newEventId()]
      const first = await deliver(event, { eventId })
      return bothAccepted(first, await deliver(event, { eventId, attempt: 2 }), mends.duplicate)
    },
  },
  {
    name: 'out-of-order',
    group: 'deliveries',
    expected: '2xx for call.ended and for a call.transcript after it',
    async run({ call, deliver }) {
      const late = call.transcript('This was said before the end.')
      const ended = await deliver(call.ended())
      return bothAccepted(ended, await deliver(late), mends.late)
    },
  },
  {
    name: 'large-body',
    group: 'deliveries',
    expected: '2xx to a call.ended with a transcript of 1 MiB',
    run: async ({ call, deliver }) => accepted(await deliver(call.ended(longTranscript(mebibyte))), mends.large),
  },
  {
    name: 'unknown-type',
    group: 'deliveries',
    expected: '2xx to an event type of the future',
    run: async ({ call, deliver }) =>
      accepted(await deliver({ type: 'call.something_new', data: call.statusUpdate().data }), mends.unknown),
  },
  {
    name: 'unknown-fields',
    group: 'deliveries',
    expected: '2xx to fields of the future',
    async run({ call, deliver }) {
      const { type, data } = call.statusUpdate()
      const more = { type, data: { ...data, addedLater: { nested: [1, null] } }, addedBeside: true }
      return accepted(await deliver(more), mends.unknown)
    },
  },
  {
    name: 'non-ascii',
    group: 'deliveries',
    expected: '2xx to text in any script',
    run: async ({ call, deliver }) => accepted(await deliver(call.transcript(texts)), mends.text),
  },
  {
    name: 'raw-body',
    group: 'deliveries',
    expected: '2xx to JSON with unusual white space and escapes, signed as it is',
    async run({ call, deliver }) {
      const event = call.transcript('Grüße')
      return accepted(await deliver(event, { body: unusualJsonOf(event) }), mends.raw)
    },
  },
  {
    name: 'concurrent',
    group: 'deliveries',
    expected: `2xx to ${atOnce} deliveries at the same time`,
    async run({ call, deliver }) {
      const texts = Array.from({ length: atOnce }, (_, index) => `Sentence ${index}.`)
      const answers = await Promise.all(texts.map((text) => deliver(call.transcript(text))))
      const finding = allAccepted(answers, mends.many)
      const slowest = Math.max(...answers.map(({ ms }) => ms))
      return finding.verdict === 'passed'
        ? { ...finding, got: `${atOnce} × 2xx, the slowest in ${slowest} ms` }
        : finding
    },
  },
]

function good(name: string, what: string, event: (stage: Stage) => ReturnType<Stage['call']['ended']>): Check {
  const run = async (stage: Stage): Promise<Finding> => accepted(await stage.deliver(event(stage)))
  return { name, group: 'deliveries', expected: `${what}: ${within}`, run }
}

/** Not a failure: deliveries arrive all the same, each with a handshake of its own. */
async function checkKeepAlive({ call, deliver, connections }: Stage): Promise<Finding> {
  const first = await deliver(call.statusUpdate())
  const before = connections()
  const answers = [first, await deliver(call.statusUpdate()), await deliver(call.statusUpdate())]
  const finding = allAccepted(answers)
  if (finding.verdict === 'failed') return finding
  const dialled = connections() - before
  if (dialled === 0) return { ...finding, got: 'three deliveries over one connection' }
  const mend = 'Do not send Connection: close, and keep idle connections for five seconds or more.'
  return { verdict: 'warned', got: `${dialled} more connections for two more deliveries`, mend }
}
