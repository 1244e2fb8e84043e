/** Networks in CIDR notation, and that everybody who judges an address by one is of the same opinion. RFC 4632, RFC 4291 section 2.3. */
import { BlockList } from 'node:net'
import { test } from 'tap'
import { createEgressGuard } from '../../actors/webhooks/egress-guard.ts'
import { createRequestLimit } from '../../api/rate-limit.ts'
import { createSipReach } from '../../app/sip-reach.ts'
import { createClientAddress } from '../../gateway/listener/client-address.ts'
import { Network } from '../../model/network.ts'
import { Problem } from '../../model/problem.ts'
import { createAllowList } from '../../net/allow-list.ts'
import { isNetwork, networksOf, plainNetworkOf } from '../../net/networks.ts'
import { isPublic } from '../../net/special-networks.ts'
import { createArrivalLimit } from '../../sip/server/transport/arrival-limit.ts'
import { sourcesOf } from '../../store/trunk-addresses.ts'
import { createHandClock } from '../fake/hand-clock.ts'
import { createRandom, type Random } from '../fake/random.ts'

test('a network has one spelling', (t) => {
  const cases: [text: string, plain: string][] = [
    ['10.0.0.1', '10.0.0.1/32'],
    ['10.1.2.3/8', '10.0.0.0/8'],
    ['0.0.0.0/0', '0.0.0.0/0'],
    ['10.1.2.3/17', '10.1.0.0/17'],
    ['10.1.130.3/17', '10.1.128.0/17'],
    ['::1', '::1/128'],
    ['::/0', '::/0'],
    ['2001:DB8:0:0::7/32', '2001:db8::/32'],
    ['2001:db8:ffff::/33', '2001:db8:8000::/33'],
    ['::ffff:198.51.100.7', '198.51.100.7/32'],
    ['::ffff:198.51.100.7/120', '198.51.100.0/24'],
    ['0:0:0:0:0:FFFF:c633:6407/120', '198.51.100.0/24'],
    ['::ffff:0:0/96', '0.0.0.0/0'],
    ['64:ff9b::a00:1/104', '10.0.0.0/8'],
    // Wider than what carries IPv4: a network of IPv6.
    ['::ffff:1.2.3.4/95', '::fffe:0:0/95'],
    ['64:ff9b::/32', '64:ff9b::/32'],
  ]
  for (const [text, plain] of cases) t.equal(plainNetworkOf(text), plain, text)
  for (const text of `10.0.0.0/33 ::/129 10.0.0.0/08 10.0.0.0/ /8 10.0.0.0/8/8 10.0.0.0/-1 10.0.0.0/1e1 10/8 010.0.0.0/8 [::1] [::1]/128 ::ffff:1.2.3.4%a/128
    fe80::1%eth0 fe80::1%eth0/64 fe80::%25/10 host.example host.example/8`
    .split(/\s+/)
    .concat('', ' 10.0.0.0/8', '10.0.0.0/8 ', '10.0.0.0 /8')) {
    t.equal(plainNetworkOf(text), null, text)
    t.throws(() => networksOf(['10.0.0.0/8', text]), { message: `${text} is no network in CIDR notation` })
  }
  t.end()
})

test('a set says in which of its networks an address lies; one of IPv6 holds no IPv4', (t) => {
  const networks = networksOf(['10.0.0.0/8', '10.1.0.0/16', '::ffff:192.0.2.0/120', '2001:db8::/33', 'fe80::/10'])
  const cases: [address: string, network: string | null][] = [
    ['10.1.2.3', '10.0.0.0/8'],
    ['::ffff:a01:203', '10.0.0.0/8'],
    ['64:ff9b::10.1.2.3', '10.0.0.0/8'],
    ['192.0.2.255', '192.0.2.0/24'],
    ['192.0.3.0', null],
    ['2001:DB8:7fff::1', '2001:db8::/33'],
    ['2001:db8:8000::1', null],
    ['fe80::1%eth0', 'fe80::/10'],
    ['2001:db8::1%eth0', null],
    ['[2001:db8::1]', null],
    ['host.example', null],
    ['', null],
  ]
  for (const [address, network] of cases) {
    t.equal(networks.holding(address), network, address)
    t.equal(networks.includes(address), network !== null, address)
  }
  t.notOk(networksOf([]).includes('10.0.0.1'))
  t.same(['10.0.0.1', '::ffff:10.0.0.1', '64:ff9b::a00:1', '::10.0.0.1', '::'].map(networksOf(['::/0']).includes), [
    false,
    false,
    false,
    true,
    true,
  ])
  t.same(['10.0.0.1', '::ffff:10.0.0.1', '::'].map(networksOf(['0.0.0.0/0']).includes), [true, true, false])
  t.end()
})

const bitsOf = { 4: 32, 6: 128 } as const
type Family = keyof typeof bitsOf

function textOf(value: bigint, family: Family): string {
  const width = family === 4 ? 8 : 16
  const count = bitsOf[family] / width
  const parts = Array.from({ length: count }, (_, index) =>
    Number((value >> BigInt(width * (count - 1 - index))) & ((1n << BigInt(width)) - 1n)),
  )
  return family === 4 ? parts.join('.') : parts.map((part) => part.toString(16)).join(':')
}

function randomBits(random: Random, bits: number): bigint {
  let value = 0n
  for (let left = bits; left > 0; left -= 16) value = (value << 16n) | BigInt(random.below(0x10000))
  return value
}

test('seeded: membership is what the bits say, and what node says', (t) => {
  const random = createRandom(4_632)
  const counts = { inside: 0, outside: 0 }
  for (let round = 0; round < 5_000; round += 1) {
    const family = random.pick([4, 6] as const)
    const bits = bitsOf[family]
    const prefix = random.below(bits + 1)
    // Never where IPv4 is carried.
    const network = randomBits(random, bits) | (family === 6 ? 1n << 127n : 0n)
    const shift = BigInt(bits - prefix)
    // Near it, or the next one would never be met.
    const near = ((network >> shift) << shift) ^ (randomBits(random, bits) >> BigInt(random.below(bits)))
    const address = random.below(2) === 0 ? near : network ^ (1n << BigInt(random.below(bits)))
    const expected = address >> shift === network >> shift
    const cidr = `${textOf(network, family)}/${prefix}`
    const ofNode = new BlockList()
    ofNode.addSubnet(textOf(network, family), prefix, family === 4 ? 'ipv4' : 'ipv6')
    const found = networksOf([cidr]).includes(textOf(address, family))
    if (found !== expected) t.fail(`${textOf(address, family)} in ${cidr}: ${found}`)
    if (ofNode.check(textOf(address, family), family === 4 ? 'ipv4' : 'ipv6') !== expected) t.fail(`node: ${cidr}`)
    counts[expected ? 'inside' : 'outside'] += 1
  }
  t.ok(counts.inside > 1_000 && counts.outside > 1_000, JSON.stringify(counts))
  t.end()
})

test('seeded: the contract takes exactly what is a network here', (t) => {
  const random = createRandom(6_890)
  const pieces = `0 1 25 255 256 a ffff F . : :: : :: / / 8 32 33 96 128 129 01 0000 1.2.3.4 % fe80`
    .split(' ')
    .concat(' ')
  const counts = { taken: 0, refused: 0 }
  for (let round = 0; round < 100_000; round += 1) {
    const text = Array.from({ length: 1 + random.below(12) }, () => random.pick(pieces)).join('')
    const isTaken = Network.safeParse(text).success
    if (isTaken !== isNetwork(text)) t.fail(`${JSON.stringify(text)}: the contract says ${isTaken}`)
    counts[isTaken ? 'taken' : 'refused'] += 1
  }
  t.ok(counts.taken > 500 && counts.refused > 500, JSON.stringify(counts))
  t.end()
})

/** Every way to write one IPv4 host as an address. */
function spellingsOf(address: string): string[] {
  const [a = 0, b = 0, c = 0, d = 0] = address.split('.').map(Number)
  const hex = (value: number, width = 0): string => value.toString(16).padStart(width, '0')
  const [high, low] = [(a << 8) | b, (c << 8) | d]
  return [
    address,
    ...[
      '::ffff',
      '::FFFF',
      '0:0:0:0:0:ffff',
      '0::ffff',
      '0000:0000:0000:0000:0000:ffff',
      '64:ff9b:',
      '64:FF9B:0:0:0:0',
    ].flatMap((prefix) => [
      `${prefix}:${address}`,
      `${prefix}:${hex(high)}:${hex(low)}`,
      `${prefix}:${hex(high, 4).toUpperCase()}:${hex(low, 4)}`,
    ]),
  ]
}

/** What each of them does with an address. Both limits let one through and the second not. */
const opinionsOf = (entry: string, address: string) => {
  const url = new URL(`http://[${address}]`.replace(/\[(\d+\.\d+\.\d+\.\d+)\]/, '$1'))
  const guardOf = (allowHosts: readonly string[]) => createEgressGuard({ allowHosts, resolve: async () => [] })
  const [open, closed] = [guardOf([entry]), guardOf([])]
  const clock = createHandClock()
  const requests = createRequestLimit({ perAccount: 0, perAddress: 1 }, clock)
  const limits = { messagesPerSecond: 1, messageBurst: 1, maxAddresses: 10, exemptsLoopback: false }
  const messages = createArrivalLimit(limits, clock.now)
  const clientOf = createClientAddress(networksOf([entry]).includes)
  const forwarded = new Request('http://call.example', { headers: { 'x-forwarded-for': '8.8.8.8' } })
  const isAsked = (from: string): boolean => {
    try {
      requests.chargeAddress({ info: { remoteAddress: from }, charged: null })
      return true
    } catch (error) {
      if (error instanceof Problem) return false
      throw error
    }
  }
  const opinions = {
    'the allow list': createAllowList([entry]).address(address),
    SIP_ALLOW_HOSTS: createSipReach([entry])(address, address),
    'the guard, allowed': open.refusalOf(url) === null,
    'the guard, not allowed': closed.refusalOf(new URL(url.href.replace('http:', 'https:'))) === null,
    public: isPublic(address),
    'a proxy': clientOf(forwarded, address) === '8.8.8.8',
    'the request limit': [isAsked('10.11.12.13'), isAsked(address)],
    'the arrival limit': [messages('10.11.12.13'), messages(address)],
  }
  open.close()
  closed.close()
  return opinions
}

test('an allow list, both limits, the list of proxies and the guard of webhooks agree on every spelling', (t) => {
  for (const entry of ['10.8.0.0/14', ...spellingsOf('10.11.12.13')]) {
    const expected = {
      'the allow list': true,
      SIP_ALLOW_HOSTS: true,
      'the guard, allowed': true,
      'the guard, not allowed': false,
      public: false,
      'a proxy': true,
      'the request limit': [true, false],
      'the arrival limit': [true, false],
    }
    for (const spelling of spellingsOf('10.11.12.13'))
      t.same(opinionsOf(entry, spelling), expected, `${entry}: ${spelling}`)
    const others = {
      ...expected,
      'the allow list': false,
      SIP_ALLOW_HOSTS: false,
      'the guard, allowed': false,
      'a proxy': false,
      'the request limit': [true, true],
      'the arrival limit': [true, true],
    }
    for (const other of [
      ...spellingsOf('10.12.12.13'),
      '::10.11.12.13',
      '2002:a0b:c0d::',
      '64:ff9b:1::a0b:c0d',
      '::ffff:0:a0b:c0d',
    ])
      t.same(opinionsOf(entry, other), others, `${entry}: ${other}`)
  }
  t.end()
})

test('each spelling of an address of a trunk is stored as one', (t) => {
  const spellings = spellingsOf('10.11.12.13')
  t.same(sourcesOf({ allowedAddresses: spellings }), ['10.11.12.13/32'])
  const hosts = spellings.map((host) => (host.includes(':') ? `[${host}]` : host))
  t.same(sourcesOf({ gateways: [...hosts, 'sip.example'].map((host) => ({ host })) }), ['10.11.12.13/32'])
  t.end()
})
