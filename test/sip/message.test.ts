/** Owns the proof of what the words of SIP mean: framing, header grammar, URIs, digests, and what a request may ask of us. */
import { test } from 'tap'
import { addressOf, addressesOf, readAddress, tagIn, tagOf } from '../../sip/server/message/address.ts'
import {
  digestResponseOf,
  provesPassword,
  readChallenge,
  readCredentials,
  writeChallenge,
  writeCredentials,
  type DigestCredentials,
} from '../../sip/server/message/digest.ts'
import { hasTag, headerOf, headersOf, valuesOf, withFirst, withHeader } from '../../sip/server/message/header-fields.ts'
import { readHostPort, readParams, splitAt, withParam } from '../../sip/server/message/header-text.ts'
import type { SipMessage, SipRequest } from '../../sip/server/message/message.ts'
import {
  cseqOf,
  rackOf,
  readCSeq,
  reasonsOf,
  rseqOf,
  secondsOf,
  sessionExpiresOf,
} from '../../sip/server/message/numbered-fields.ts'
import { parseMessage } from '../../sip/server/message/parse-message.ts'
import { contentLengthIn, endOfHead, readHead } from '../../sip/server/message/read-head.ts'
import { responseTo } from '../../sip/server/message/response-to.ts'
import { readSipUri, readUri, schemeOf, subscriberOf, writeUri, type SipUri } from '../../sip/server/message/uri.ts'
import { validateRequest } from '../../sip/server/message/validate-request.ts'
import { branchOf, readVia, topViaOf, withTopVia, writeVia } from '../../sip/server/message/via.ts'
import { writeMessage } from '../../sip/server/message/write-message.ts'

const mandatoryLines = [
  'Via: SIP/2.0/UDP 192.0.2.1:5061;branch=z9hG4bK1;rport',
  'From: "Ann" <sip:ann@example.com>;tag=a1',
  'To: <sip:bob@example.com>',
  'Call-ID: one@example.com',
  'CSeq: 7 OPTIONS',
]

const textOf = (lines: readonly string[], { start = 'OPTIONS sip:bob@example.com SIP/2.0', body = '' } = {}): string =>
  `${[start, ...lines].join('\r\n')}\r\n\r\n${body}`

const parse = (lines: readonly string[], options = {}) => parseMessage(Buffer.from(textOf(lines, options)))

function taken(lines: readonly string[] = mandatoryLines, options = {}): SipMessage {
  const parsed = parse(lines, options)
  if (parsed.kind !== 'message') throw new Error(`not a message: ${JSON.stringify(parsed).slice(0, 300)}`)
  return parsed.message
}

function request(
  extra: readonly string[] = [],
  { method = 'OPTIONS', uri = 'sip:bob@example.com', body = '' } = {},
): SipRequest {
  const lines = mandatoryLines.map((line) => line.replace(/OPTIONS$/, method))
  const message = taken([...lines, ...extra], { start: `${method} ${uri} SIP/2.0`, body })
  if (message.kind !== 'request') throw new Error('not a request')
  return message
}

const with_ = (name: string, value: string): SipRequest => request([`${name}: ${value}`])

const reasonOf = (lines: readonly string[], options = {}): string => {
  const parsed = parse(lines, options)
  return parsed.kind === 'fault' ? `${parsed.fault.status} ${parsed.fault.reason}` : parsed.kind
}

void test('what is read and written again is the same message, with Content-Length made anew', (t) => {
  const message = taken([...mandatoryLines, 'l: 4', 'Content-Type: text/plain'], { body: 'vier and what follows' })
  t.equal(Buffer.from(message.body).toString(), 'vier', 'what follows the length named is ignored (§18.3)')
  const wire = writeMessage(message).toString()
  t.match(wire, /\r\nContent-Length: 4\r\n\r\nvier$/)
  t.same(parseMessage(Buffer.from(wire)), {
    kind: 'message',
    message: {
      ...message,
      headers: [...withHeader(message, 'Content-Length').headers, { name: 'Content-Length', value: '4' }],
    },
  })
  t.end()
})

void test('without Content-Length a datagram is body to its end', (t) => {
  t.equal(Buffer.from(taken(mandatoryLines, { body: 'all of it' }).body).toString(), 'all of it')
  t.end()
})

void test('line ends in front of a message, and lines that end with LF alone, do no harm', (t) => {
  const wire = `\r\n\r\n${textOf(mandatoryLines)}`
  t.equal(parseMessage(Buffer.from(wire)).kind, 'message')
  t.equal(parseMessage(Buffer.from(wire.replaceAll('\r\n', '\n'))).kind, 'message')
  t.end()
})

void test('keep-alives, other protocols, malformed responses and malformed ACKs are never answered', (t) => {
  const ack = mandatoryLines.map((line) => line.replace('7 OPTIONS', '7 ACK'))
  for (const text of ['', '\r\n\r\n', '\0', 'GET / HTTP/1.1\r\nHost: a\r\n\r\n', 'hello', '\u0001\u0001\u0000'])
    t.equal(parseMessage(Buffer.from(text)).kind, 'garbage', JSON.stringify(text))
  t.equal(reasonOf(mandatoryLines.slice(1)), 'garbage', 'no Via')
  t.equal(reasonOf(['Via: SIP/2.0/UDP', ...mandatoryLines.slice(1)]), 'garbage', 'a Via that leads nowhere')
  t.equal(reasonOf(mandatoryLines.slice(0, 3), { start: 'SIP/2.0 200 OK' }), 'garbage', 'a response without Call-ID')
  t.equal(reasonOf(mandatoryLines, { start: 'SIP/2.0 700 Too Much' }), 'garbage', 'a status that does not exist')
  t.equal(reasonOf(ack, { start: 'ACK sip:bob@example.com SIP/2.0' }), 'message', 'a good ACK is one')
  t.equal(reasonOf(ack.slice(0, 4), { start: 'ACK sip:bob@example.com SIP/2.0' }), 'garbage', 'one without CSeq is not')
  t.end()
})

void test('a mandatory header that is missing, said twice or malformed is answered 400 and named', (t) => {
  for (const [index, name] of [
    [1, 'From'],
    [2, 'To'],
    [3, 'Call-ID'],
    [4, 'CSeq'],
  ] as const) {
    t.equal(reasonOf(mandatoryLines.toSpliced(index, 1)), `400 Missing ${name}`)
    t.equal(reasonOf([...mandatoryLines, mandatoryLines[index] ?? '']), `400 More Than One ${name}`)
    t.equal(
      reasonOf(mandatoryLines.with(index, `${name}: <`)),
      name === 'Call-ID' ? 'message' : `400 Malformed ${name}`,
    )
  }
  t.equal(reasonOf(mandatoryLines.with(3, 'Call-ID: a b')), '400 Malformed Call-ID')
  t.equal(reasonOf(mandatoryLines.with(4, 'CSeq: 2147483648 OPTIONS')), '400 Malformed CSeq', 'below 2**31')
  t.equal(reasonOf(mandatoryLines.with(4, 'CSeq: 2147483647 OPTIONS')), 'message')
  t.equal(reasonOf(mandatoryLines.with(4, 'CSeq: 7 options')), '400 CSeq Method Does Not Match', 'methods have a case')
  t.equal(reasonOf([...mandatoryLines, 'Via: nonsense']), '400 Malformed Via', 'also one below the first')
  t.end()
})

void test('limits: 200 header fields, 16 KiB a line, 64 KiB a message', (t) => {
  const many = (count: number) => [...mandatoryLines, ...Array.from({ length: count }, () => 'X: y')]
  t.equal(reasonOf(many(195)), 'message')
  t.equal(reasonOf(many(196)), '400 Too Many Header Fields')
  t.equal(reasonOf([...mandatoryLines, `X: ${'y'.repeat(17_000)}`]), '400 Header Field Too Long')
  t.equal(reasonOf(mandatoryLines, { body: 'y'.repeat(65_000) }), 'message')
  t.equal(reasonOf(mandatoryLines, { body: 'y'.repeat(66_000) }), '413 Message Too Large')
  t.equal(reasonOf(mandatoryLines, { start: `OPTIONS sip:${'y'.repeat(17_000)} SIP/2.0` }), '400 Request-Line Too Long')
  t.equal(parseMessage(Buffer.from(textOf(mandatoryLines).slice(0, -2))).kind, 'fault', 'the empty line is missing')
  t.end()
})

void test('a header that is no header is answered 400, and nothing smuggles a line break', (t) => {
  t.equal(reasonOf([...mandatoryLines, 'no colon']), '400 Malformed Header Field')
  t.equal(reasonOf([...mandatoryLines, 'na me: x']), '400 Malformed Header Field')
  t.equal(reasonOf([...mandatoryLines, 'Subject: a\rVia: x']), '400 Malformed Subject')
  for (const control of ['\0', '\u0001', '\u001b', '\u007f']) {
    t.equal(reasonOf([...mandatoryLines, `X-Any: a${control}b`]), '400 Malformed X-Any')
    t.equal(reasonOf(mandatoryLines.with(1, `From: <sip:a${control}@x>;tag=1`)), '400 Malformed From')
    t.equal(
      reasonOf(mandatoryLines, { start: `OPTIONS sip:a${control}b@example.com SIP/2.0` }),
      '400 Malformed Request-Line',
    )
    const answer = parseMessage(
      Buffer.from(textOf([...mandatoryLines, `X-Any: a${control}b`], { start: 'SIP/2.0 200 OK' })),
    )
    t.equal(answer.kind === 'message' && headerOf(answer.message, 'X-Any'), 'a b', 'a response is read without it')
  }
  t.equal(reasonOf([...mandatoryLines, 'X-Any: a\tb']), 'message', 'a tab is space')
  t.equal(reasonOf([...mandatoryLines, 'X-Any: "a\\\0b"']), 'message', 'a quoted pair may be any')
  const message = withHeader(taken(), 'Subject', 'a\r\nVia: evil')
  t.match(writeMessage(message).toString(), /\r\nSubject: a Via: evil\r\n/)
  t.end()
})

void test('the head of a stream is found wherever its pieces end, and says how long the body is', (t) => {
  const bytes = Buffer.from(textOf([...mandatoryLines, 'Content-Length: 3'], { body: 'abc' }))
  const end = bytes.length - 3
  for (let cut = 0; cut < end; cut += 1) {
    t.equal(endOfHead(bytes.subarray(0, cut), 0) === -1, true)
    if (endOfHead(bytes, 0, cut) !== end) t.fail(`search begun again at ${cut}`)
  }
  t.equal(endOfHead(bytes, 0), end)
  t.equal(contentLengthIn(readHead(bytes.subarray(0, end)).headers), 3)
  t.equal(contentLengthIn([]), null)
  for (const value of ['-1', '3.0', 'x', '', '99999999999'])
    t.ok(Number.isNaN(contentLengthIn([{ name: 'Content-Length', value }])))
  t.end()
})

void test('known names are put in their long form with the usual capitals', (t) => {
  const message = taken([
    'v: SIP/2.0/UDP a',
    'f: <sip:a@b>',
    't: <sip:a@b>',
    'i: 1',
    'cseq: 7 OPTIONS',
    'x: 90',
    'www-authenticate: X',
    'min-se: 90',
    'X-MY-thing: 1',
    'm: <sip:a@b>',
    'k: timer',
    'r: <sip:a@b>',
    'RACK: 1 1 A',
  ])
  t.same(
    message.headers.map(({ name }) => name),
    [
      'Via',
      'From',
      'To',
      'Call-ID',
      'CSeq',
      'Session-Expires',
      'WWW-Authenticate',
      'Min-SE',
      'X-MY-thing',
      'Contact',
      'Supported',
      'Refer-To',
      'RAck',
    ],
  )
  t.end()
})

void test('lists are cut at commas that separate, over all fields of a name', (t) => {
  const message = request([
    'Contact: "a, b" <sip:a,b@c>;q=1, <sip:d@e>',
    'Contact: sip:f@g',
    'Supported: timer,, 100rel',
    'Supported:',
  ])
  t.same(valuesOf(message, 'Contact'), ['"a, b" <sip:a,b@c>;q=1', '<sip:d@e>', 'sip:f@g'])
  t.same(valuesOf(message, 'Supported'), ['timer', '100rel'])
  t.ok(hasTag(message, 'Supported', '100REL'))
  t.notOk(hasTag(message, 'Require', 'timer'))
  t.equal(splitAt('a, "b', ','), null)
  t.same(
    addressesOf(message, 'Contact').map(({ uri }) => uri),
    ['sip:a,b@c', 'sip:d@e', 'sip:f@g'],
  )
  t.end()
})

void test('headers are set in their place, put in front, and taken away', (t) => {
  const message = request(['Subject: a', 'Route: <sip:1>', 'Subject: b', 'X-Y: y'])
  const names = (changed: SipRequest) => changed.headers.slice(5).map(({ name, value }) => `${name}=${value}`)
  t.same(names(withHeader(message, 'Subject', 'c', 'd')), ['Subject=c', 'Subject=d', 'Route=<sip:1>', 'X-Y=y'])
  t.same(names(withHeader(message, 'Subject')), ['Route=<sip:1>', 'X-Y=y'])
  t.equal(headerOf(withHeader(message, 'New', 'n'), 'New'), 'n')
  t.equal(withFirst(message, { name: 'Via', value: 'z' }).headers[0]?.value, 'z')
  t.same(headersOf(message, 'Subject'), ['a', 'b'], 'and the message before stays as it was')
  t.end()
})

void test('addresses: names quoted or not, parameters of the URI or of the header', (t) => {
  const read = (value: string) => {
    const address = readAddress(value)
    return address && [address.displayName, address.uri, Object.fromEntries(address.params)]
  }
  t.same(read('"A \\"x\\" <y>" <sip:a@b;lr>;tag=1'), ['A "x" <y>', 'sip:a@b;lr', { tag: '1' }])
  t.same(read('Ann Lee <sip:a@b>'), ['Ann Lee', 'sip:a@b', {}])
  t.same(read('<tel:+1;ext=2>;Tag = 9;x'), [null, 'tel:+1;ext=2', { tag: '9', x: null }])
  t.same(read('sip:a@b;tag=1'), [null, 'sip:a@b', { tag: '1' }])
  t.same(read('""<sip:a@b>'), ['', 'sip:a@b', {}])
  for (const value of [
    '',
    'sip',
    '<sip:a@b',
    '"a <sip:a@b>',
    'a"b <sip:a@b>',
    '<sip:a@b> x',
    'sip:a@b?x=y',
    'sip:a b',
    '<>',
    '"a" b <sip:a@b>',
  ])
    t.equal(read(value), null, value)
  t.equal(tagIn('<sip:a@b>;x=tag;TAG=t'), 't')
  t.equal(tagOf(request(), 'To'), null)
  t.equal(addressOf(request(), 'From')?.displayName, 'Ann')
  t.end()
})

void test('URIs are taken apart, and written again as they were', (t) => {
  const uri = (text: string) => readSipUri(text) as SipUri
  const whole = uri('sip:al%20ice:p%3aw@[2001:db8::1]:5070;transport=TCP;lr;Maddr=1.2.3.4?subject=a&x=y')
  t.match(whole, {
    scheme: 'sip',
    user: 'al ice',
    password: 'p:w',
    host: '2001:db8::1',
    port: 5070,
    headers: 'subject=a&x=y',
  })
  t.same(Object.fromEntries(whole.params), { transport: 'TCP', lr: null, maddr: '1.2.3.4' })
  t.equal(writeUri(whole), 'sip:al%20ice:p%3Aw@[2001:db8::1]:5070;transport=TCP;lr;maddr=1.2.3.4?subject=a&x=y')
  t.match(uri('SIPS:example.com'), { scheme: 'sips', user: null, host: 'example.com', port: null, headers: null })
  t.equal(uri('sip:%e5%a4%a7@h').user, '大')
  t.equal(uri('sip:%ff%zz@h').user, '%ff%zz', 'what is no UTF-8 stays')
  t.equal(writeUri(uri('sip:%e5%a4%a7@h')), 'sip:%E5%A4%A7@h')
  t.same(readUri('TEL:+49-30-12;ext=5'), { scheme: 'tel', number: '+49-30-12', params: new Map([['ext', '5']]) })
  t.equal(writeUri(readUri('tel:+4930;ext=5') as never), 'tel:+4930;ext=5')
  t.match(subscriberOf(uri('sip:+4930;ext=5;phone-context=x@h;user=phone')), { number: '+4930' })
  t.equal(subscriberOf(uri('sip:+4930;ext=5@h'))?.params.get('ext'), '5')
  t.equal(subscriberOf(uri('sip:h')), null)
  for (const text of [
    'sip:',
    'sip:@h',
    'sip:a@',
    'sip:a@b@c',
    'sip:a@b;x=c@d',
    'sip:a b@c',
    'sip:h:0',
    'sip:h:65536',
    'sip:h:x',
    'sip:[::1',
    'sip:[1.2]',
    'sip:h>',
    'http://a',
    'tel:',
    'tel:abcxyz',
    'x',
  ])
    t.equal(readUri(text), null, text)
  t.equal(schemeOf('Soap.Beep://x'), 'soap.beep')
  t.equal(schemeOf('no scheme'), null)
  t.same(readHostPort('[::1] : 5060'), { host: '::1', port: 5060 })
  t.end()
})

void test('Via: by which way an answer goes', (t) => {
  const via = readVia('SIP / 2.0 / udp [2001:db8::9] : 5062 ; branch = z9hG4bKx ;rport;received="::1"')
  t.match(via, { transport: 'UDP', host: '2001:db8::9', port: 5062 })
  t.equal(via && branchOf(via), 'z9hG4bKx')
  t.equal(via?.params.get('rport'), null)
  t.equal(via && writeVia(via), 'SIP/2.0/UDP [2001:db8::9]:5062;branch=z9hG4bKx;rport;received="::1"')
  for (const value of [
    '',
    'SIP/2.0/UDP',
    'SIP/2.0 h',
    'UDP h',
    'SIP/2.0/UDP h:x',
    'SIP/2.0/UDP h;a="',
    'SIP/2.0/UDP a b',
    'SIP/2.0/UDP h:70000',
  ])
    t.equal(readVia(value), null, value)
  const message = taken([
    'Subject: x',
    'Via: SIP/2.0/UDP a;branch=1, SIP/2.0/TCP b',
    'Via: SIP/2.0/TLS c',
    ...mandatoryLines.slice(1),
  ])
  const top = topViaOf(message)
  t.equal(top?.host, 'a')
  const marked = withTopVia(message, { ...top!, params: withParam(top!.params, 'received', '192.0.2.7') })
  t.same(headersOf(marked, 'Via'), ['SIP/2.0/UDP a;branch=1;received=192.0.2.7, SIP/2.0/TCP b', 'SIP/2.0/TLS c'])
  t.end()
})

void test('parameters: names without case, values as they stood, the first of two', (t) => {
  t.same(Object.fromEntries(readParams(';A=1; b = "x;y" ;c;a=2') ?? []), { a: '1', b: '"x;y"', c: null })
  for (const text of [';=1', ';a="', ';<', ';a b=1']) t.equal(readParams(text), null, text)
  t.end()
})

void test('numbers and times of header fields', (t) => {
  t.same(cseqOf(request()), { number: 7, method: 'OPTIONS' })
  t.equal(readCSeq('x INVITE'), null)
  t.equal(rseqOf(with_('RSeq', '988789')), 988789)
  for (const value of ['0', '4294967296', 'x', '']) t.equal(rseqOf(with_('RSeq', value)), null)
  t.same(rackOf(with_('RAck', '776656 1  INVITE')), { rseq: 776656, cseq: { number: 1, method: 'INVITE' } })
  t.same(sessionExpiresOf(with_('x', '1800 ;Refresher=UAS')), { seconds: 1800, refresher: 'uas' })
  t.same(sessionExpiresOf(with_('Session-Expires', '90')), { seconds: 90, refresher: null })
  t.same(sessionExpiresOf(with_('Session-Expires', '90;refresher=me')), { seconds: 90, refresher: null })
  t.equal(sessionExpiresOf(with_('Session-Expires', 'soon')), null)
  t.equal(secondsOf(with_('Min-SE', '120;x=y'), 'Min-SE'), 120)
  t.equal(secondsOf(with_('Retry-After', '18000;duration=3600 (later)'), 'Retry-After'), 18_000)
  t.equal(secondsOf(with_('Expires', '99999999999'), 'Expires'), 0xffff_ffff)
  t.equal(secondsOf(request(), 'Expires'), null)
  t.same(reasonsOf(with_('Reason', 'Q.850 ;cause=16;text="Normal, call clearing", SIP;cause=200')), [
    { protocol: 'Q.850', cause: 16, text: 'Normal, call clearing' },
    { protocol: 'SIP', cause: 200, text: null },
  ])
  t.end()
})

const mufasa = {
  username: 'Mufasa',
  realm: 'http-auth@example.org',
  nonce: '7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v',
  uri: '/dir/index.html',
  opaque: 'FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS',
  nc: '00000001',
  cnonce: 'f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ',
} as const

void test('digest responses are those of RFC 7616 §3.9.1 and RFC 2617 §3.5', (t) => {
  const response = (algorithm: 'MD5' | 'SHA-256') => digestResponseOf({ ...mufasa, algorithm }, 'GET', 'Circle of Life')
  t.equal(response('MD5'), '8ca523f5e9506fed4657c9700eebdbec')
  t.equal(response('SHA-256'), '753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1')
  const old = {
    username: 'Mufasa',
    realm: 'testrealm@host.com',
    nonce: 'dcd98b7102dd2f0e8b11d0f600bfb0c093',
    uri: '/dir/index.html',
  }
  const counted = { ...old, algorithm: 'MD5', nc: '00000001', cnonce: '0a4f113b' } as const
  t.equal(digestResponseOf(counted, 'GET', 'Circle Of Life'), '6629fae49393a05397450978507c4ef1')
  t.equal(
    digestResponseOf({ ...counted, nc: null, cnonce: null }, 'GET', 'Circle Of Life'),
    '670fd8c2df070c60b045671b8b24ff02',
  )
  t.end()
})

void test('credentials and challenges are written as they are read, quotes and all', (t) => {
  const credentials: DigestCredentials = {
    ...mufasa,
    username: 'a "b", c',
    response: 'A'.repeat(64),
    algorithm: 'SHA-256',
  }
  t.same(readCredentials(writeCredentials(credentials)), credentials)
  const challenge = {
    realm: 'a, "b"',
    nonce: 'n=',
    opaque: null,
    stale: true,
    algorithm: 'MD5',
    qopAuth: true,
  } as const
  t.same(readChallenge(writeChallenge(challenge)), challenge)
  t.match(readChallenge('digest realm="r",nonce="n" , qop="auth-int, auth" ,,algorithm=md5'), {
    algorithm: 'MD5',
    qopAuth: true,
    stale: false,
  })
  t.match(readChallenge('Digest realm="r", nonce="n"'), { algorithm: 'MD5', qopAuth: false, opaque: null })
  for (const value of [
    'Basic realm="r"',
    'Digest nonce="n"',
    'Digest realm="r", nonce="n", algorithm=SHA-512-256',
    'Digest realm="r", nonce="n", qop="auth-int"',
    'Digest realm="r" nonce="n"',
    'Digest realm="r", nonce="n", "x"',
    'Digest realm="r", nonce="n", opaque=',
    'Digest realm="r, nonce="n"',
    'Digest realm="r", realm="s", nonce="n"',
    'Digest',
    'Digest realm',
  ])
    t.equal(readChallenge(value), null, value)
  t.end()
})

void test('a password is proved by the response alone; half a qop proves nothing', (t) => {
  const unproved = { ...mufasa, algorithm: 'SHA-256' } as const
  const credentials = { ...unproved, response: digestResponseOf(unproved, 'INVITE', 'secret') }
  t.ok(provesPassword(credentials, 'INVITE', 'secret'))
  t.ok(provesPassword({ ...credentials, response: credentials.response.toUpperCase() }, 'INVITE', 'secret'))
  t.notOk(provesPassword(credentials, 'INVITE', 'Secret'))
  t.notOk(provesPassword(credentials, 'REGISTER', 'secret'))
  t.notOk(provesPassword({ ...credentials, algorithm: 'MD5' }, 'INVITE', 'secret'))
  const wire = writeCredentials(credentials)
  for (const broken of [
    wire.replace(/, nc=\w+/, ''),
    wire.replace(/, cnonce="[^"]*"/, ''),
    wire.replace('nc=00000001', 'nc=1'),
    wire.replace(/response="\w{60}/, 'response="'),
  ])
    t.equal(readCredentials(broken), null, broken.slice(-80))
  t.end()
})

void test('an answer copies what RFC 3261 §8.2.6 names, and adds a tag to To', (t) => {
  const asked = request(['Via: SIP/2.0/TCP b', 'Timestamp: 54', 'Subject: x', 'Record-Route: <sip:p;lr>'])
  const names = (status: number, toTag: string | null) =>
    responseTo(asked, { status, reason: 'R', toTag, headers: [{ name: 'Allow', value: 'BYE' }] }).headers.map(
      ({ name }) => name,
    )
  t.same(names(200, 't'), ['Via', 'From', 'To', 'Call-ID', 'CSeq', 'Via', 'Allow'])
  t.same(names(100, null), ['Via', 'From', 'To', 'Call-ID', 'CSeq', 'Via', 'Timestamp', 'Allow'])
  t.equal(tagOf(responseTo(asked, { status: 200, reason: 'R', toTag: 't' }), 'To'), 't')
  t.equal(tagOf(responseTo(asked, { status: 100, reason: 'R', toTag: 't' }), 'To'), null)
  const inDialog = withHeader(asked, 'To', 'sip:a@b;tag=old')
  t.equal(headerOf(responseTo(inDialog, { status: 200, reason: 'R', toTag: 't' }), 'To'), 'sip:a@b;tag=old')
  t.end()
})

void test('a request is refused in the order of RFC 3261 §8.2', (t) => {
  const understood = {
    methods: ['INVITE', 'BYE', 'CANCEL', 'OPTIONS'],
    options: ['timer'],
    bodies: { INVITE: ['application/sdp'] },
  }
  const verdict = (extra: readonly string[], options = {}) => {
    const fault = validateRequest(request(extra, options), understood)
    return fault && [fault.status, ...fault.headers.map(({ name, value }) => `${name}: ${value}`)].join(' ')
  }
  const contact = 'Contact: <sip:a@b>'
  const invite = { method: 'INVITE' }
  t.equal(verdict([]), null)
  t.equal(verdict([], { method: 'SUBSCRIBE' }), '405 Allow: INVITE, BYE, CANCEL, OPTIONS')
  t.equal(verdict([], { method: 'invite' }), '501 Allow: INVITE, BYE, CANCEL, OPTIONS')
  t.equal(verdict([], { uri: 'mailto:a@b' }), '416')
  t.equal(verdict([], { uri: 'nothing' }), '400')
  t.equal(verdict([], { uri: 'sip:a@b?c=d' }), '400')
  t.equal(verdict([], { uri: 'tel:+49301' }), null)
  t.equal(verdict(['Max-Forwards: 256']), '400')
  t.equal(verdict(['Max-Forwards: 0']), null, 'we forward nothing')
  t.equal(verdict(['Require: timer, foo', 'Require: bar']), '420 Unsupported: foo, bar')
  t.equal(verdict(['Require: TIMER', 'Proxy-Require: foo']), null)
  t.equal(verdict(['Require: foo'], { method: 'CANCEL' }), null, '§8.2.2.3')
  t.equal(verdict(['Require: foo'], { method: 'ACK' }), null, 'an ACK is never answered')
  t.equal(verdict([], invite), '400', 'an INVITE without Contact')
  t.equal(verdict(['Contact: *'], invite), '400')
  t.equal(verdict([contact], invite), null)
  t.equal(
    verdict([contact, 'Content-Encoding: gzip', 'Content-Type: application/sdp'], { ...invite, body: 'x' }),
    '415 Accept-Encoding: identity',
  )
  t.equal(verdict([contact, 'Content-Encoding: gzip'], invite), null, 'there is nothing to decode')
  t.equal(verdict([contact, 'c: application/SDP;charset=x'], { ...invite, body: 'x' }), null)
  t.equal(verdict([contact, 'c: text/plain'], { ...invite, body: 'x' }), '415 Accept: application/sdp')
  t.equal(
    verdict([contact, 'c: text/plain', 'Content-Disposition: x; handling=optional'], { ...invite, body: 'x' }),
    null,
  )
  t.equal(verdict([contact], { ...invite, body: 'x' }), '400')
  t.equal(verdict([contact, 'Accept: text/plain, application/*;q=0.1'], invite), null)
  t.equal(verdict([contact, 'Accept: text/plain'], invite), '406')
  t.end()
})
