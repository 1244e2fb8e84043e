/** Who fails too often is slowed and then banned for a while; nobody else is, whoever's name is on the packets. Time is turned by hand. */
import { test } from 'tap'
import { createFailureGuard, type Ban, type Failure } from '../../net/failure-guard.ts'

type Options = Partial<Parameters<typeof createFailureGuard>[0]>

function open(options: Options = {}) {
  let now = 1_000_000
  const banned: Ban[] = []
  const guard = createFailureGuard({
    now: () => now,
    banAfter: 10,
    banFor: 600_000,
    isExempt: () => false,
    banned: (ban) => void banned.push(ban),
    ...options,
  })
  return { guard, banned, turn: (ms: number) => void (now += ms) }
}
type Guard = ReturnType<typeof open>['guard']

const by = (address: string, isProven = false) => ({ address, isProven })

/** As a SIP edge asks: how many of so many requests of a stranger are heard. */
function heard(guard: Guard, sender: ReturnType<typeof by>, count: number, isCall = true): number {
  let answers = 0
  for (let index = 0; index < count; index += 1) if (guard.hears(sender, isCall)) answers += 1
  return answers
}

/** As a listener asks: how many of so many wrong secrets are told to be wrong. */
function told(guard: Guard, address: string, count: number, failure: Failure = 'wrong_key'): number {
  let answers = 0
  for (let index = 0; index < count; index += 1)
    if (guard.looksAt(by(address, true)) && guard.failed(by(address, true), failure)) answers += 1
  return answers
}

test('a stranger is answered a few times, then not, then banned once, and heard again when the ban is over', (t) => {
  const { guard, banned, turn } = open()
  t.equal(heard(guard, by('192.0.2.7'), 9), 5)
  t.same(banned, [], 'slowed, not banned yet')
  t.equal(heard(guard, by('192.0.2.7'), 1_000), 0)
  t.match(banned, [{ group: '192.0.2.7', isProven: false, failure: 'unknown_peer', until: 1_600_000 }])
  t.equal(banned.length, 1, 'once, not for each packet')
  t.equal(heard(guard, by('192.0.2.8'), 1), 1, 'another address is heard')
  turn(599_999)
  t.notOk(guard.hears(by('192.0.2.7'), true), 'what came meanwhile made the ban no longer')
  turn(1)
  t.ok(guard.hears(by('192.0.2.7'), true))
  t.same(guard.bans(), [])
  t.end()
})

test('who is slowed is heard again as time passes, less often than at first', (t) => {
  const { guard, turn } = open()
  t.equal(heard(guard, by('192.0.2.7', true), 5), 5)
  turn(119_000)
  t.equal(heard(guard, by('192.0.2.7', true), 1), 0)
  turn(122_000)
  t.equal(heard(guard, by('192.0.2.7', true), 2), 1)
  turn(3_600_000)
  t.equal(heard(guard, by('192.0.2.7', true), 6), 5)
  t.end()
})

test('an address is what limits count: an IPv4 address however it is written, an IPv6 /64', (t) => {
  const { guard, banned } = open()
  heard(guard, by('192.0.2.7'), 100)
  t.notOk(guard.hears(by('::ffff:192.0.2.7'), true))
  for (let host = 1; host <= 100; host += 1) heard(guard, by(`2001:db8:1:2::${host.toString(16)}`), 1)
  t.notOk(guard.hears(by('2001:db8:1:2:ffff::1'), true))
  t.ok(guard.hears(by('2001:db8:1:3::1'), true))
  t.same(
    banned.map(({ group }) => group),
    ['192.0.2.7', '2001:db8:1:2'],
  )
  t.end()
})

test('packets in the name of an address silence nothing of it that is proven, and not who has shown a password', (t) => {
  const { guard, banned } = open()
  heard(guard, by('192.0.2.7'), 1_000)
  t.ok(guard.hears(by('192.0.2.7', true), true), 'over TCP it is heard')
  t.equal(told(guard, '192.0.2.7', 10), 10, 'its keys are looked at')
  guard.proved('198.51.100.1')
  t.equal(heard(guard, by('198.51.100.1'), 1_000), 1_000)
  t.equal(banned.length, 1)
  t.end()
})

test('who only asks again and again is not answered any more, and may call all the same', (t) => {
  for (const isProven of [true, false]) {
    const { guard, banned } = open()
    const exchange = by('192.0.2.7', isProven)
    t.equal(heard(guard, exchange, 1_000, false), 5)
    t.match(banned, [{ group: '192.0.2.7', isProven, covers: 'questions' }])
    t.equal(banned.length, 1)
    t.equal(heard(guard, exchange, 1_000), 5, 'its calls are counted apart')
    t.match(banned[1], { isProven, covers: 'all' })
    guard.lift('192.0.2.7')
    heard(guard, exchange, 1_000, false)
    guard.proved('192.0.2.7')
    t.equal(heard(guard, exchange, 100, false), 100, 'when it has proved its password it is answered')
    t.equal(told(guard, '192.0.2.7', 10), 10)
  }
  const { guard } = open()
  heard(guard, by('192.0.2.7'), 1_000)
  t.equal(heard(guard, by('192.0.2.7'), 1, false), 0, 'who is banned for its calls is not answered either')
  t.end()
})

test('what is proven silences also what comes by UDP from there', (t) => {
  const { guard } = open()
  heard(guard, by('192.0.2.7', true), 100)
  t.notOk(guard.hears(by('192.0.2.7'), true))
  t.end()
})

test('keys and tokens, passwords and strangers are weighed, and add up for an address', (t) => {
  for (const [failure, most] of [
    ['wrong_password', 5],
    ['wrong_token', 60],
    ['wrong_key', 120],
  ] as const) {
    const { guard, banned } = open()
    t.equal(told(guard, '192.0.2.7', 2 * most - 1, failure), most, failure)
    t.same(banned, [])
    told(guard, '192.0.2.7', 1, failure)
    t.match(banned, [{ failure, isProven: true }])
  }
  const { guard } = open()
  t.equal(told(guard, '192.0.2.7', 60), 60)
  t.equal(heard(guard, by('192.0.2.7', true), 10), 2)
  t.end()
})

test('behind one NAT the right key is looked at while the wrong one is banned, so often as costs little', (t) => {
  const { guard, turn } = open()
  told(guard, '192.0.2.7', 1_000)
  turn(10_000)
  let looks = 0
  for (let index = 0; index < 100; index += 1) if (guard.looksAt(by('192.0.2.7', true))) looks += 1
  t.equal(looks, 5)
  turn(1_000)
  t.ok(guard.looksAt(by('192.0.2.7', true)))
  t.notOk(guard.looksAt(by('192.0.2.7', true)))
  t.notOk(guard.hears(by('192.0.2.7', true), true), 'nothing of an address that has shown no right secret is heard')
  guard.proved('192.0.2.7')
  turn(5_000)
  t.ok(guard.hears(by('192.0.2.7', true), true), 'one that has is slowed only')
  t.ok(guard.hears(by('192.0.2.7'), true), 'by UDP too')
  t.end()
})

test('whom the operator exempts is never slowed, nobody is when the guard is off, and no address is none', (t) => {
  const exempt = open({ isExempt: (address) => address === '192.0.2.7' })
  t.equal(heard(exempt.guard, by('192.0.2.7'), 1_000), 1_000)
  t.equal(heard(exempt.guard, by(''), 1_000), 1_000)
  const off = open({ banAfter: 0 })
  t.equal(heard(off.guard, by('192.0.2.7'), 1_000), 1_000)
  t.equal(told(off.guard, '192.0.2.7', 1_000), 1_000)
  t.same([...exempt.banned, ...off.banned], [])
  t.end()
})

test('a ban that is lifted is over, and one of another process holds here', (t) => {
  const { guard, banned, turn } = open()
  heard(guard, by('192.0.2.7', true), 100)
  guard.lift('192.0.2.7')
  t.equal(heard(guard, by('192.0.2.7', true), 5), 5, 'it begins anew')
  guard.adopt({
    group: '192.0.2.9',
    isProven: true,
    covers: 'all',
    failure: 'wrong_key',
    since: 1_000_000,
    until: 1_060_000,
  })
  t.notOk(guard.hears(by('192.0.2.9', true), true))
  t.equal(guard.wait(by('192.0.2.9', true)), 60_000)
  t.equal(banned.length, 1, 'which is told by the other')
  turn(60_000)
  t.ok(guard.hears(by('192.0.2.9', true), true))
  t.end()
})

test('what was counted beforehand is taken back for who proves a password, and unanswered challenges weigh little', (t) => {
  const { guard } = open()
  const phone = by('192.0.2.7')
  for (let call = 0; call < 17; call += 1) {
    t.ok(guard.hears(phone, true), `challenge ${call}`)
    guard.takeBack(phone)
    guard.failed(phone, 'no_password')
  }
  t.notOk(guard.hears(by('192.0.2.7'), true), 'who answers none of them is slowed too')
  t.equal(heard(guard, by('192.0.2.8'), 2), 2)
  guard.takeBack(by('192.0.2.8'))
  t.equal(heard(guard, by('192.0.2.8'), 10), 4)
  t.end()
})

test('memory is bounded, and no crowd of addresses clears the ban of one of them', (t) => {
  const { guard, banned } = open({ maxBans: 100, maxCounted: 1_000 })
  heard(guard, by('192.0.2.7', true), 100)
  heard(guard, by('192.0.2.8'), 100)
  for (let index = 0; index < 20_000; index += 1) {
    const address = `10.${index >> 16}.${(index >> 8) & 255}.${index & 255}`
    heard(guard, by(address, index % 2 === 0), 12)
  }
  t.equal(guard.bans().length, 200)
  t.equal(banned.length, 200)
  t.notOk(guard.hears(by('192.0.2.7', true), true))
  t.notOk(guard.hears(by('192.0.2.8'), true))
  t.equal(heard(guard, by('198.51.100.1', true), 20), 5, 'beyond the room for bans it stays slowed')
  t.end()
})

test('packets in made-up names do not let who guesses passwords begin anew', (t) => {
  const { guard, banned } = open({ maxCounted: 100 })
  told(guard, '192.0.2.7', 9, 'wrong_password')
  for (let index = 0; index < 10_000; index += 1) heard(guard, by(`10.0.${index >> 8}.${index & 255}`), 1)
  told(guard, '192.0.2.7', 1, 'wrong_password')
  t.match(banned, [{ group: '192.0.2.7' }])
  t.end()
})

test('a clock that is set back forgives nothing and bans nobody longer than by its hands', (t) => {
  const { guard, turn } = open()
  heard(guard, by('192.0.2.7', true), 6)
  turn(-3_600_000)
  t.notOk(guard.hears(by('192.0.2.7', true), true))
  t.end()
})

const guesser = (address: string, port = 5060, target = 'trunk') => ({
  target,
  address,
  port,
  protocol: 'udp',
  isProven: true,
})

/** How many of so many wrong passwords are looked at. */
const looked = ({ guesses }: Guard, from: ReturnType<typeof guesser>, count: number): number =>
  Array.from({ length: count }, () => guesses.look(from)).filter(({ wait }) => wait === 0).length

test('a password is guessed five times by an address, and then every half minute once, whichever of its ports asks', (t) => {
  const { guard, turn } = open()
  t.equal(looked(guard, guesser('192.0.2.1'), 400), 5)
  t.equal(looked(guard, guesser('192.0.2.1', 5061), 400), 0)
  t.equal(looked(guard, guesser('192.0.2.1', 5061, 'another trunk'), 400), 0, 'nor at another trunk')
  turn(30_000)
  t.equal(looked(guard, guesser('192.0.2.1'), 400), 1)
  t.equal(looked(open({ banAfter: 0 }).guard, guesser('192.0.2.1'), 400), 400, 'where nobody is slowed')
  t.equal(looked(open({ isExempt: () => true }).guard, guesser('192.0.2.1'), 400), 400)
  t.end()
})

test('a right password costs nothing, and who proved it is looked at while others of the address guess', (t) => {
  const { guard } = open()
  for (let count = 0; count < 100; count += 1) {
    const { wait, right } = guard.guesses.look(guesser('192.0.2.1'))
    t.equal(wait, 0)
    right()
  }
  t.equal(looked(guard, guesser('192.0.2.1', 9), 400), 5)
  t.equal(guard.guesses.look(guesser('192.0.2.1', 9)).wait, 30_000)
  t.equal(looked(guard, guesser('192.0.2.1'), 400), 5)
  const forged = { ...guesser('192.0.2.2'), isProven: false }
  t.equal(looked(guard, forged, 400), 5)
  t.equal(looked(guard, guesser('192.0.2.2'), 400), 5, 'packets in the name of an address spend nothing of it')
  t.end()
})

test('a trunk whose password many addresses guess has one guess for each of them, so that its own is heard from anywhere', (t) => {
  const { guard, turn } = open()
  let guesses = 0
  for (let host = 1; host <= 200; host += 1) guesses += looked(guard, guesser(`198.51.100.${host}`), 400)
  t.equal(guesses, 4 * 5 + 196)
  const { wait, right } = guard.guesses.look(guesser('203.0.113.9'))
  t.equal(wait, 0, 'one that was never here')
  right()
  turn(60_000)
  t.equal(looked(guard, guesser('198.51.100.77'), 400), 2, 'as many as the trunk has again')
  t.end()
})
