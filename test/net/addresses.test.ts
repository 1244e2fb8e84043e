/** The one opinion about an address: its spelling, whom it reaches, whom it counts as. RFC 4291, RFC 5952, RFC 6052. */
import { isIP, SocketAddress } from 'node:net'
import { test } from 'tap'
import {
  addressGroupOf,
  isLinkLocal,
  isLoopback,
  peerAddressOf,
  plainAddressOf,
  reachedAddressOf,
} from '../../net/addresses.ts'
import { inSamePrivateNetwork, isPublic } from '../../net/special-networks.ts'
import { createRandom, type Random } from '../fake/random.ts'

test('an address has one spelling, reaches one host and counts as one', (t) => {
  const same = null
  const cases: [text: string, plain: string | null, reached: string | null, group: string][] = [
    ['10.0.0.1', '10.0.0.1', same, '10.0.0.1'],
    ['::ffff:10.0.0.1', '10.0.0.1', same, '10.0.0.1'],
    ['::FFFF:10.0.0.1', '10.0.0.1', same, '10.0.0.1'],
    ['::ffff:a00:1', '10.0.0.1', same, '10.0.0.1'],
    ['::FFFF:0A00:0001', '10.0.0.1', same, '10.0.0.1'],
    ['0:0:0:0:0:ffff:a00:1', '10.0.0.1', same, '10.0.0.1'],
    ['0:0:0:0:0:ffff:10.0.0.1', '10.0.0.1', same, '10.0.0.1'],
    ['0000:0000:0000:0000:0000:ffff:0a00:0001', '10.0.0.1', same, '10.0.0.1'],
    ['0::ffff:10.0.0.1', '10.0.0.1', same, '10.0.0.1'],
    // What stands behind NAT64 is spoken to by its IPv6 address, and is the IPv4 host.
    ['64:ff9b::a00:1', '64:ff9b::a00:1', '10.0.0.1', '10.0.0.1'],
    ['64:ff9b::10.0.0.1', '64:ff9b::a00:1', '10.0.0.1', '10.0.0.1'],
    ['0064:FF9B:0:0:0:0:10.0.0.1', '64:ff9b::a00:1', '10.0.0.1', '10.0.0.1'],
    ['64:ff9b::', '64:ff9b::', '0.0.0.0', '0.0.0.0'],
    // Other ways to carry IPv4 are IPv6.
    ['::10.0.0.1', '::a00:1', same, '0:0:0:0'],
    ['::ffff:0:10.0.0.1', '::ffff:0:a00:1', same, '0:0:0:0'],
    ['64:ff9b:1::a00:1', '64:ff9b:1::a00:1', same, '64:ff9b:1:0'],
    ['2002:a00:1::', '2002:a00:1::', same, '2002:a00:1:0'],
    ['2001:DB8:0:0::1', '2001:db8::1', same, '2001:db8:0:0'],
    ['2001:0db8:0000:0000:0000:0000:0000:0001', '2001:db8::1', same, '2001:db8:0:0'],
    ['2001:db8:0:1:1:1:1:1', '2001:db8:0:1:1:1:1:1', same, '2001:db8:0:1'],
    ['1:0:0:2:0:0:0:3', '1:0:0:2::3', same, '1:0:0:2'],
    ['1:0:0:2:3:0:0:4', '1::2:3:0:0:4', same, '1:0:0:2'],
    ['1:2:3:4:5:6:7::', '1:2:3:4:5:6:7:0', same, '1:2:3:4'],
    ['::', '::', same, '0:0:0:0'],
    ['0:0:0:0:0:0:0:1', '::1', same, '0:0:0:0'],
    ['ffff::', 'ffff::', same, 'ffff:0:0:0'],
    ['fe80::1%eth0', 'fe80::1%eth0', 'fe80::1', 'fe80:0:0:0'],
    ['FE80:0::1%en0.5', 'fe80::1%en0.5', 'fe80::1', 'fe80:0:0:0'],
    ['febf::1%2', 'febf::1%2', 'febf::1', 'febf:0:0:0'],
  ]
  for (const [text, plain, reached, group] of cases) {
    t.equal(plainAddressOf(text), plain, `${text} plain`)
    t.equal(reachedAddressOf(text), reached ?? plain, `${text} reached`)
    t.equal(addressGroupOf(text), group, `${text} group`)
  }
  t.end()
})

const noAddresses =
  `localhost host.example 127.1 1.2.3 0x7f000001 2130706433 010.0.0.1 256.1.1.1 1.2.3.4.5 1.2.3.4%eth0 [::1] ::1/128 1.2.3.4:80
  : ::: 1::2::3 1:2:3:4:5:6:7 1:2:3:4:5:6:7:8:9 1:2:3:4::5:6:7:8 ::1:2:3:4:5:6:7:8 :1:2:3:4:5:6:7:8 1:2:3:4:5:6:7:8: 1:2:3:4:5:6:7: :1 1:
  12345:: g:: ::1.2.3 ::1.2.3.4:5 ::1.2.3.256 1:2:3:4:5:6:7:1.2.3.4 1.2.3.4::  ::01.2.3.4 fe80::1% fe80::1%a%b fe80::1%[ ::1%lo
  ::ffff:10.0.0.1%eth0 2001:db8::1%eth0`
    .split(/\s+/)
    .concat('', ' 1.2.3.4', '::1 ', '１.2.3.4')

test('what is no address is nothing to anybody, and counts as itself', (t) => {
  for (const text of noAddresses) {
    t.same([plainAddressOf(text), reachedAddressOf(text)], [null, null], text)
    t.same([isLoopback(text), isPublic(text), inSamePrivateNetwork(text, text)], [false, false, false], text)
    t.equal(addressGroupOf(text), text)
  }
  t.end()
})

test('this machine is known in every spelling, and a packet through NAT64 is not from it', (t) => {
  const own = `127.0.0.1 127.255.255.254 ::1 0:0:0:0:0:0:0:1 0000:0000:0000:0000:0000:0000:0000:0001 ::ffff:127.0.0.1 ::FFFF:127.0.0.1
    ::ffff:7f00:1 0:0:0:0:0:ffff:7fff:ffff 0000:0000:0000:0000:0000:ffff:7f00:0001`
  for (const address of own.split(/\s+/)) t.ok(isLoopback(address), address)
  const others = `126.255.255.255 128.0.0.1 0.0.0.0 10.0.0.1 :: ::2 1::1 ::7f00:1 ::127.0.0.1 ::ffff:8000:1 64:ff9b::7f00:1 64:ff9b::127.0.0.1
    127.999.1.1 127.0.0.1.example localhost`
  for (const address of others.split(/\s+/)) t.notOk(isLoopback(address), address)
  t.same(['fe80::1', 'FEBF::1%eth0', 'fec0::1', '169.254.0.1', '::fe80', 'x'].map(isLinkLocal), [
    true,
    true,
    false,
    false,
    false,
    false,
  ])
  t.end()
})

test('addresses that are not public are recognised in all of their forms', (t) => {
  const refused = `0.0.0.0 0.1.2.3 10.0.0.1 100.64.0.1 100.127.255.255 127.0.0.1 127.255.255.254 169.254.169.254 172.16.0.1
    172.31.255.255 192.0.0.192 192.0.2.1 192.88.99.1 192.168.1.1 198.18.0.1 198.19.255.255 198.51.100.7 203.0.113.9 224.0.0.1
    239.255.255.250 240.0.0.1 255.255.255.255 168.63.129.16 100.100.100.200
    :: ::1 ::ffff:127.0.0.1 ::ffff:7f00:1 0:0:0:0:0:ffff:a00:1 ::ffff:169.254.169.254 ::127.0.0.1 ::ffff:0:127.0.0.1
    64:ff9b::7f00:1 64:ff9b::10.0.0.1 64:ff9b::169.254.169.254 64:ff9b:1::1 100::1 2001::1 2001:0:4136:e378:8000:63bf:3fff:fdd2
    2001:10::1 2001:db8::1 2002:7f00:1:: 2002:0a00:0001::1 3fff::1 4000::1 5f00::1 fc00::1 fd00:ec2::254 fe80::1 fe80::1%eth0 fec0::1
    ff02::1 ff0e::1 8000::1 localhost 127.1 1.2.3 0x7f000001`
  for (const address of refused.split(/\s+/)) t.notOk(isPublic(address), address)
  const open = `1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.1 169.253.0.1 172.15.0.1
    172.32.0.1 192.0.1.1 192.167.1.1 198.17.0.1 198.20.0.1 223.255.255.255 2606:4700::1111 2a00:1450:4001::1 2001:4860:4860::8888
    ::ffff:8.8.8.8 64:ff9b::8.8.8.8 64:ff9b::808:808`
  for (const address of open.split(/\s+/)) t.ok(isPublic(address), address)
  t.end()
})

test('who shares a private network with whom', (t) => {
  const together: [string, string][] = [
    ['10.0.0.1', '10.255.0.1'],
    ['172.16.0.1', '::ffff:172.31.0.1'],
    ['100.64.0.1', '100.127.0.1'],
    ['fd00::1', 'fc00::1'],
    ['fe80::1%eth0', 'fe80::2'],
  ]
  for (const [one, other] of together) t.ok(inSamePrivateNetwork(one, other) && inSamePrivateNetwork(other, one), one)
  const apart: [string, string][] = [
    ['10.0.0.1', '192.168.0.1'],
    ['10.0.0.1', '11.0.0.1'],
    ['172.32.0.1', '172.32.0.2'],
    ['169.254.0.1', '169.254.0.2'],
    ['127.0.0.1', '127.0.0.1'],
    ['192.0.2.1', '192.0.2.1'],
    ['2001:db8::1', '2001:db8::1'],
  ]
  for (const [one, other] of apart) t.notOk(inSamePrivateNetwork(one, other), one)
  t.end()
})

type Words = readonly number[]

/** Half of the words are zero, some addresses carry IPv4. */
function randomWords(random: Random): Words {
  const words = Array.from({ length: 8 }, () => (random.below(2) === 0 ? 0 : random.below(0x10000)))
  const prefix = random.pick<Words>([[], [], [], [0, 0, 0, 0, 0, 0xffff], [0x64, 0xff9b, 0, 0, 0, 0]])
  return [...prefix, ...words.slice(prefix.length)]
}

/** One of the many ways to write it. */
function randomSpelling(random: Random, words: Words): string {
  const hex = (word: number): string => {
    const digits = word.toString(16).padStart(1 + random.below(4), '0')
    return random.below(2) === 0 ? digits : digits.toUpperCase()
  }
  const [e = 0, f = 0] = words.slice(6)
  const dotted = random.below(3) === 0 ? [[e >> 8, e & 255, f >> 8, f & 255].join('.')] : null
  const groups = [...words.slice(0, 6).map(hex), ...(dotted ?? words.slice(6).map(hex))]
  const zeros = (from: number, to: number): boolean => to > from && words.slice(from, to).every((word) => word === 0)
  const from = random.below(8)
  const to = Math.min(from + random.below(8), dotted ? 6 : 8)
  if (!zeros(from, to)) return groups.join(':')
  return `${groups.slice(0, from).join(':')}::${groups.slice(to).join(':')}`
}

test('seeded: reading what was written gives the same, whatever the spelling, and as the system writes it', (t) => {
  const random = createRandom(20_260_729)
  for (let round = 0; round < 20_000; round += 1) {
    const words = randomWords(random)
    const text = randomSpelling(random, words)
    const plain = plainAddressOf(text)
    if (plain === null) t.fail(`${text} is none`)
    const again = plainAddressOf(randomSpelling(random, words))
    if (plain !== again || plain !== plainAddressOf(plain ?? '')) t.fail(`${text}: ${plain}, ${again}`)
    // A peer that is `::a.b.c.d` there is none: IPv4-compatible addresses are gone (RFC 4291 §2.5.5.1), and systems write them their own way.
    const isCompatible = words.slice(0, 6).every((word) => word === 0) && words[6] !== 0
    const asSystem = new SocketAddress({ address: text, family: 'ipv6' }).address
    if (!isCompatible && plain !== peerAddressOf(asSystem)) t.fail(`${text}: ${plain}, of the system ${asSystem}`)
    if (addressGroupOf(text) !== addressGroupOf(plain ?? '')) t.fail(`${text} and ${plain} count as two`)
  }
  t.pass('20,000 addresses')
  t.end()
})

test('seeded: an address is what the system takes for one', (t) => {
  const random = createRandom(7)
  const pieces = `0 1 255 256 a ffff F . : :: : :: 8 01 0000 00000 1.2.3.4 g fe80 12345`.split(' ').concat(' ')
  let taken = 0
  for (let round = 0; round < 200_000; round += 1) {
    const text = Array.from({ length: 1 + random.below(16) }, () => random.pick(pieces)).join('')
    const isOne = plainAddressOf(text) !== null
    if (isOne) taken += 1
    if (isOne !== (isIP(text) !== 0)) t.fail(`${JSON.stringify(text)} is ${isOne ? 'taken' : 'refused'}`)
  }
  t.ok(taken > 1_000, `${taken} were addresses`)
  t.end()
})
