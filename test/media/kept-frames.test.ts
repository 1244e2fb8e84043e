/** What a leg keeps of its caller's voice for an actor that follows, and what it sends again to whom. */
import { test } from 'tap'
import { createKeptFrames, type Listening } from '../../media/leg/kept-frames.ts'
import { bytesOf, type Frame } from '../../model/frame.ts'
import type { KeyEvent } from '../../model/leg.ts'

const hears = { encoding: 'pcmu', rateHz: 8000 } as const
const elsewhere = (epoch: number): Listening => ({ epoch, hears, isElsewhere: true, asks: true, numbersKeys: true })
const here = (epoch: number): Listening => ({ ...elsewhere(epoch), isElsewhere: false })

const keyOf = (event: KeyEvent): string => (event.type === 'dtmf' ? `#${event.digit}` : event.text)

function open() {
  const sent: string[] = []
  const kept = createKeptFrames({
    send: ({ epoch, seq, payload }) => void sent.push(`${epoch}:${seq}=${payload[0]}`),
    tell: (event) =>
      void sent.push(
        event.line
          ? `${event.line.epoch}:${event.line.seq}=${keyOf(event)}${event.line.hidden ? ' hidden' : ''}`
          : keyOf(event),
      ),
  })
  let said = 0
  /** The line of each actor counts from 0. */
  let seq = 0
  const hear = (epoch: number, frames: number): void => {
    for (let frame = 0; frame < frames; frame++)
      kept.heard({ epoch, seq: seq++, timestamp: said * 20, payload: Uint8Array.of(said++) } satisfies Frame)
  }
  const begin = (actor: Listening) => {
    seq = 0
    return kept.begin(actor)
  }
  const press = (digit: string): void => kept.pressed({ type: 'dtmf', digit })
  return { sent, kept, hear, press, begin, news: () => sent.splice(0) }
}

test('an actor of the same process gets what is said at once, and nothing is kept', async (t) => {
  const { kept, hear, begin, news } = open()
  t.same(begin(here(1)), { kept: 0, waits: false, keeps: false })
  hear(1, 3)
  t.same(news(), ['1:0=0', '1:1=1', '1:2=2'])
  t.equal(kept.size(), 0)
  t.same(
    begin({ ...elsewhere(2), isElsewhere: false, asks: false }),
    { kept: 0, waits: false, keeps: false },
    'nor by one of before',
  )
})

test('what an actor elsewhere heard and did not settle is heard again by the next, in order, before what is said then', async (t) => {
  const { kept, hear, begin, news } = open()
  t.same(begin(elsewhere(1)), { kept: 0, waits: true, keeps: true })
  hear(1, 1)
  t.same(news(), [], 'it waits for its actor')
  kept.listens()
  hear(1, 4)
  t.same(news(), ['1:0=0', '1:1=1', '1:2=2', '1:3=3', '1:4=4'])
  kept.settled({ seq: 2 })
  t.equal(kept.size(), 2)

  t.same(begin(elsewhere(2)), { kept: 2, waits: true, keeps: true })
  hear(2, 1)
  kept.listens()
  kept.listens()
  hear(2, 1)
  t.same(news(), ['2:0=3', '2:1=4', '2:2=5', '2:3=6'])
  kept.settled({ seq: 2 })
  t.same(begin(here(3)), { kept: 1, waits: true, keeps: false }, 'its seqs are the second actor’s')
  kept.listens()
  hear(3, 1)
  t.same(news(), ['3:0=6', '3:1=7'])
  t.equal(kept.size(), 0, 'an actor beside the leg needs nothing kept')
})

test('who leaves has the leg keep what is said from then on; who hears another format gets nothing of it', async (t) => {
  const { kept, hear, begin, news } = open()
  begin(here(1))
  hear(1, 2)
  kept.keep()
  hear(1, 2)
  t.same(news(), ['1:0=0', '1:1=1'])
  t.same(begin(elsewhere(2)), { kept: 2, waits: true, keeps: true })
  t.same(begin({ ...elsewhere(3), hears: { encoding: 'pcm16', rateHz: 16_000 } }), {
    kept: 0,
    waits: true,
    keeps: true,
  })
})

test('the same actor that begins anew has heard what is kept', async (t) => {
  const { kept, hear, begin, news } = open()
  begin(elsewhere(1))
  kept.listens()
  hear(1, 2)
  t.same(begin(elsewhere(1)), { kept: 0, waits: false, keeps: true })
  hear(1, 2)
  t.same(news(), ['1:0=0', '1:1=1', '1:2=2', '1:3=3'], 'and its count goes on')
})

test('a caller who speaks for minutes loses their pauses first, then their oldest words, and no key', async (t) => {
  const sent: { seq: number; bytes: number }[] = []
  const keys: number[] = []
  const kept = createKeptFrames({
    send: ({ seq, payload }) => void sent.push({ seq, bytes: payload.length }),
    tell: ({ line }) => void keys.push(line!.seq),
  })
  const hears = { encoding: 'pcm16', rateHz: 16_000 } as const
  let seq = 0
  const hear = (ms: number, level: number): void => {
    const samples = Int16Array.from({ length: 320 }, (_, at) => (at % 2 ? level : -level))
    for (let passed = 0; passed < ms; passed += 20)
      kept.heard({ epoch: 1, seq, timestamp: seq++ * 20, payload: bytesOf(samples) })
  }
  kept.begin({ ...elsewhere(1), hears })
  kept.listens()
  kept.pressed({ type: 'dtmf', digit: '1' })
  for (let sentence = 0; sentence < 8; sentence++) {
    hear(2_000, 5_000)
    hear(8_000, 20)
  }
  t.ok(kept.size() <= 1638, '1 MiB of 640 bytes each')
  sent.length = 0
  kept.again(0)
  const loud = sent.filter(({ seq, bytes }) => bytes > 0 && (seq - 1) % 500 < 100)
  t.equal(loud.length, 800, 'eighty seconds on, not a word is lost')
  const gaps = sent.filter(({ bytes }) => bytes === 0)
  t.ok(gaps.length >= 6 && gaps.length <= 8, `${gaps.length}`)
  for (const { seq } of gaps) t.ok((seq - 1) % 500 >= 130 && (seq - 1) % 500 <= 484, `a pause is left: ${seq}`)

  hear(60_000, 5_000)
  sent.length = 0
  kept.again(0)
  const [first, ...rest] = sent
  t.match(first, { bytes: 0 }, 'what was before is gone')
  t.ok(rest.length > 1_400 && rest.length <= 1_638)
  t.same(
    rest.map(({ seq }) => seq),
    Array.from(rest, (_, at) => first!.seq + 1 + at),
  )
  t.equal(rest.at(-1)?.seq, (80_000 + 60_000) / 20)
  t.same(keys.slice(1), [0, 0])
  t.same(kept.begin({ ...elsewhere(2), hears }), { kept: rest.length, waits: true, keeps: true })
})

test('what is pressed has its place among what is said, waits for who listens, and is heard again with it', async (t) => {
  const { kept, hear, press, begin, news } = open()
  press('0')
  t.same(begin(elsewhere(1)), { kept: 0, waits: true, keeps: true })
  hear(1, 1)
  t.same(news(), [])
  kept.listens()
  press('1')
  kept.hides(true)
  hear(1, 1)
  press('2')
  kept.hides(false)
  const first = ['1:0=#0', '1:1=0', '1:2=#1', '1:3=1', '1:4=#2 hidden']
  t.same(news(), first)
  t.equal(kept.again(3), 3)
  t.same(news(), first.slice(3))
  t.equal(kept.again(9), 5, 'the next that will be')
  kept.settled({ seq: 2 })
  t.same(begin(elsewhere(2)), { kept: 1, waits: true, keeps: true }, 'of sound')
  kept.listens()
  t.same(news(), ['2:0=1', '2:1=#2 hidden'])
  t.same(begin({ ...elsewhere(3), hears: { encoding: 'pcm16', rateHz: 16_000 } }), {
    kept: 0,
    waits: true,
    keeps: true,
  })
  kept.listens()
  t.same(news(), ['3:0=#2 hidden'], 'a key has no format')
})

test('an actor that takes no numbers is told of keys as they are pressed, and of those before it at once', async (t) => {
  const { kept, hear, press, begin, news } = open()
  const older: Listening = { ...elsewhere(1), numbersKeys: false }
  press('0')
  begin(older)
  hear(1, 1)
  press('1')
  kept.listens()
  hear(1, 1)
  t.same(news(), ['#0', '#1', '1:0=0', '1:1=1'])
  begin({ ...here(2), asks: false })
  press('2')
  hear(2, 1)
  t.same(news(), ['2:0=#2', '2:1=2'])
})

test('keys are settled by themselves: one that is open stays when what is said around it goes, and goes when that stays', async (t) => {
  const { kept, hear, press, begin, news } = open()
  begin(elsewhere(1))
  kept.listens()
  press('1')
  hear(1, 2)
  press('2')
  hear(1, 1)
  press('3')
  news()
  kept.settled({ seq: 2, keys: { upTo: 3, open: [0] } })
  begin(elsewhere(2))
  kept.listens()
  t.same(news(), ['2:0=#1', '2:1=2', '2:2=#3'])
  hear(2, 1)
  kept.settled({ seq: 0, keys: { upTo: 3, open: [2] } })
  begin(elsewhere(3))
  kept.listens()
  t.same(news(), ['2:3=3', '3:0=2', '3:1=#3', '3:2=3'])
})

test('an actor beside the leg that leaves gives back the keys that nobody has told, in front of what comes then', async (t) => {
  const { kept, hear, press, begin, news } = open()
  begin(here(1))
  press('1')
  kept.hides(true)
  press('2')
  t.same(news(), ['1:0=#1', '1:1=#2 hidden'])
  kept.keep()
  press('3')
  hear(1, 1)
  t.same(news(), [])
  kept.keep([{ type: 'dtmf', digit: '2', line: { epoch: 1, seq: 1, hidden: true } }])
  t.same(begin(elsewhere(2)), { kept: 1, waits: true, keeps: true })
  kept.listens()
  t.same(news(), ['2:0=#2 hidden', '2:1=#3 hidden', '2:2=0'])
})
