/** Work that is done together: who goes with whom, and that a bad member costs the others nothing. */
import { test } from 'tap'
import { beatBehind } from '../../store/beat.ts'
import { createTogether } from '../../store/together.ts'

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** Groups end when the test says so; the letter `x` is one that is refused. */
function createWork(most = 3, pace = 0) {
  const groups: { readonly members: readonly string[]; end(error?: Error): void }[] = []
  const ask = createTogether<string, string>({
    keyOf: (asked) => asked[0] ?? '',
    most,
    pace,
    async work(members) {
      const { promise, resolve, reject } = Promise.withResolvers<void>()
      groups.push({ members, end: (error) => (error ? reject(error) : resolve()) })
      await promise
      if (members.some((member) => member.includes('x'))) throw new Error('refused')
      return members.map((member) => `done ${member}`)
    },
  })
  return { ask, groups, members: () => groups.map((group) => group.members) }
}

test('those that come while a group is under way are the next group, in their order, as many as may be together', async (t) => {
  const { ask, groups, members } = createWork()
  const first = [ask('a1'), ask('a2')]
  await turn()
  const later = ['a3', 'a4', 'a5', 'a6'].map(ask)
  await turn()
  t.same(members(), [['a1', 'a2']], 'those of one turn go together, and nobody overtakes them')
  groups[0]?.end()
  t.same(await Promise.all(first), ['done a1', 'done a2'])
  await turn()
  t.same(members().slice(1), [['a3', 'a4', 'a5']])
  groups[1]?.end()
  await turn()
  groups[2]?.end()
  t.same(await Promise.all(later), ['done a3', 'done a4', 'done a5', 'done a6'])
})

test('at a pace who comes alone goes at once, who comes behind waits for its time, and a full group for nothing', async (t) => {
  const { ask, groups, members } = createWork(3, 3_600_000)
  const first = ask('a1')
  await turn()
  t.same(members(), [['a1']])
  groups[0]?.end()
  await first
  const later = ['a2', 'a3'].map(ask)
  await turn()
  await turn()
  t.equal(groups.length, 1)
  later.push(ask('a4'))
  await turn()
  t.same(members()[1], ['a2', 'a3', 'a4'])
  groups[1]?.end()
  t.same(await Promise.all(later), ['done a2', 'done a3', 'done a4'])
})

test('all that is paced alike waits for the same beats', (t) => {
  t.same(
    [100, 100.1, 119.9, 120].map((time) => beatBehind(time, 20)),
    [120, 120, 120, 140],
  )
  t.equal(beatBehind(113, 10), 120, 'of which a longer pace leaves some out')
  t.equal(beatBehind(113, 0), 113)
  t.end()
})

test('groups of different keys do not wait for each other', async (t) => {
  const { ask, groups, members } = createWork()
  const [slow, quick] = [ask('a1'), ask('b1')]
  await turn()
  t.same(members(), [['a1'], ['b1']])
  groups[1]?.end()
  t.equal(await quick, 'done b1')
  groups[0]?.end()
  t.equal(await slow, 'done a1')
})

test('a group that is refused is done again one by one, and only the bad member fails', async (t) => {
  const { ask, groups, members } = createWork()
  const all = Promise.allSettled(['a1', 'ax', 'a3'].map(ask))
  for (let group = 0; group < 4; group++) {
    await turn()
    groups[group]?.end()
  }
  t.match(await all, [
    { value: 'done a1' },
    { status: 'rejected', reason: { message: 'refused' } },
    { value: 'done a3' },
  ])
  t.same(members(), [['a1', 'ax', 'a3'], ['a1'], ['ax'], ['a3']])
})

test('while the database is away nobody is tried again one by one', async (t) => {
  const { ask, groups, members } = createWork()
  const all = Promise.allSettled(['a1', 'a2'].map(ask))
  await turn()
  groups[0]?.end(Object.assign(new Error('away'), { code: 'CONNECTION_CLOSED' }))
  t.match(await all, [{ reason: { message: 'away' } }, { reason: { message: 'away' } }])
  t.same(members(), [['a1', 'a2']])
})

for (const [what, code] of [
  ['a lock that somebody holds', '55P03'],
  ['a deadlock', '40P01'],
] as const)
  test(`${what} is of one member, and the others are done`, async (t) => {
    const { ask, groups, members } = createWork()
    const all = Promise.all(['a1', 'a2'].map(ask))
    await turn()
    groups[0]?.end(Object.assign(new Error('locked'), { code }))
    for (const group of [1, 2]) {
      await turn()
      groups[group]?.end()
    }
    t.same(await all, ['done a1', 'done a2'])
    t.same(members(), [['a1', 'a2'], ['a1'], ['a2']])
  })
