/** Owns the messages of RFC 4475 §3.2–§3.4: well formed, and wrong or old in what they say. */
import { addressOf, addressesOf, tagOf } from '../../../sip/server/message/address.ts'
import { readCredentials } from '../../../sip/server/message/digest.ts'
import { headerOf } from '../../../sip/server/message/header-fields.ts'
import { readSipUri } from '../../../sip/server/message/uri.ts'
import { branchOf, magicCookie, topViaOf } from '../../../sip/server/message/via.ts'
import { bytesOf, sessionBody, type TortureMessage } from './torture-message.ts'

export const semanticMessages: readonly TortureMessage[] = [
  {
    section: '3.2.1 badbranch',
    bytes: bytesOf(`
OPTIONS sip:user@example.com SIP/2.0
To: sip:user@example.com
From: sip:caller@example.org;tag=33242
Max-Forwards: 3
Via: SIP/2.0/UDP 192.0.2.1;branch=z9hG4bK
Accept: application/sdp
Call-ID: badbranch.sadonfo23i420jv0as0derf3j3n
CSeq: 8 OPTIONS
l: 0

`),
    verdict: 'taken',
    holds: { 'nothing follows the magic cookie': (message) => branchOf(topViaOf(message)!) === magicCookie },
  },
  {
    section: '3.3.1 insuf',
    bytes: bytesOf(`
INVITE sip:user@example.com SIP/2.0
CSeq: 193942 INVITE
Via: SIP/2.0/UDP 192.0.2.95;branch=z9hG4bKkdj.insuf
Content-Type: application/sdp
l: {length}

${sessionBody}`),
    verdict: 400,
  },
  {
    section: '3.3.2 unkscm',
    bytes: bytesOf(`
OPTIONS nobodyKnowsThisScheme:totallyopaquecontent SIP/2.0
To: sip:user@example.com
From: sip:caller@example.net;tag=384
Max-Forwards: 3
Call-ID: unkscm.nasdfasser0q239nwsdfasdkl34
CSeq: 3923423 OPTIONS
Via: SIP/2.0/TCP host9.example.com;branch=z9hG4bKkdjuw39234
Content-Length: 0

`),
    verdict: 416,
  },
  {
    section: '3.3.3 novelsc',
    bytes: bytesOf(`
OPTIONS soap.beep://192.0.2.103:3002 SIP/2.0
To: sip:user@example.com
From: sip:caller@example.net;tag=384
Max-Forwards: 3
Call-ID: novelsc.asdfasser0q239nwsdfasdkl34
CSeq: 3923423 OPTIONS
Via: SIP/2.0/TCP host9.example.com;branch=z9hG4bKkdjuw39234
Content-Length: 0

`),
    verdict: 416,
  },
  {
    section: '3.3.4 unksm2',
    bytes: bytesOf(`
REGISTER sip:example.com SIP/2.0
To: isbn:2983792873
From: <http://www.example.com>;tag=3234233
Max-Forwards: 7
Call-ID: unksm2.daksdj@hyphenated-host.example.com
CSeq: 234902 REGISTER
Via: SIP/2.0/UDP 192.0.2.21:5060;branch=z9hG4bKkdjuw
Contact: <name:John_Smith>
l: 0

`),
    // Parsers must not fail; that a registrar wants a SIP URI in To is the registrar's affair.
    verdict: 'taken',
    holds: {
      'URIs of any scheme are read': (message) =>
        addressOf(message, 'To')?.uri === 'isbn:2983792873' && tagOf(message, 'From') === '3234233',
    },
  },
  {
    section: '3.3.5 bext01',
    bytes: bytesOf(`
OPTIONS sip:user@example.com SIP/2.0
To: sip:j_user@example.com
From: sip:caller@example.net;tag=242etr
Max-Forwards: 6
Call-ID: bext01.0ha0isndaksdj
Require: nothingSupportsThis, nothingSupportsThisEither
Proxy-Require: noProxiesSupportThis, norDoAnyProxiesSupportThis
CSeq: 8 OPTIONS
Via: SIP/2.0/TLS fold-and-staple.example.com;branch=z9hG4bKkdjuw
Content-Length: 0

`),
    verdict: 420,
  },
  {
    section: '3.3.6 invut',
    bytes: bytesOf(`
INVITE sip:user@example.com SIP/2.0
Contact: <sip:caller@host5.example.net>
To: sip:j.user@example.com
From: sip:caller@example.net;tag=8392034
Max-Forwards: 70
Call-ID: invut.0ha0isndaksdjadsfij34n23d
CSeq: 235448 INVITE
Via: SIP/2.0/UDP somehost.example.com;branch=z9hG4bKkdjuw
Content-Type: application/unknownformat
Content-Length: {length}

<audio>
 <pcmu port="443"/>
</audio>
`),
    verdict: 415,
  },
  {
    section: '3.3.7 regaut01',
    bytes: bytesOf(`
REGISTER sip:example.com SIP/2.0
To: sip:j.user@example.com
From: sip:j.user@example.com;tag=87321hj23128
Max-Forwards: 8
Call-ID: regaut01.0ha0isndaksdj
CSeq: 9338 REGISTER
Via: SIP/2.0/TCP 192.0.2.253;branch=z9hG4bKkdjuw
Authorization: NoOneKnowsThisScheme opaque-data=here
Content-Length:0

`),
    verdict: 'taken',
    holds: {
      'credentials of another scheme are none': (message) =>
        readCredentials(headerOf(message, 'Authorization')!) === null,
    },
  },
  {
    section: '3.3.8 multi01',
    bytes: bytesOf(`
INVITE sip:user@company.com SIP/2.0
Contact: <sip:caller@host25.example.net>
Via: SIP/2.0/UDP 192.0.2.25;branch=z9hG4bKkdjuw
Max-Forwards: 70
CSeq: 5 INVITE
Call-ID: multi01.98asdh@192.0.2.1
CSeq: 59 INVITE
Call-ID: multi01.98asdh@192.0.2.2
From: sip:caller@example.com;tag=3413415
To: sip:user@example.com
To: sip:other@example.net
From: sip:caller@example.net;tag=2923420123
Content-Type: application/sdp
l: {length}
Contact: <sip:caller@host36.example.net>
Max-Forwards: 5

${sessionBody}`),
    verdict: 400,
  },
  {
    section: '3.3.9 mcl01',
    bytes: bytesOf(`
OPTIONS sip:user@example.com SIP/2.0
Via: SIP/2.0/UDP host5.example.net;branch=z9hG4bK293423
To: sip:user@example.com
From: sip:other@example.net;tag=3923942
Call-ID: mcl01.fhn2323orihawfdoa3o4r52o3irsdf
CSeq: 15932 OPTIONS
Content-Length: 13
Max-Forwards: 60
Content-Length: 5
Content-Type: text/plain

There's no way to know how many octets are supposed to be here.
`),
    verdict: 400,
  },
  {
    section: '3.3.10 bcast',
    bytes: bytesOf(`
SIP/2.0 200 OK
Via: SIP/2.0/UDP 192.0.2.198;branch=z9hG4bK1324923
Via: SIP/2.0/UDP 255.255.255.255;branch=z9hG4bK1saber23
Call-ID: bcast.0384840201234ksdfak3j2erwedfsASdf
CSeq: 35 INVITE
From: sip:user@example.com;tag=11141343
To: sip:user@example.edu;tag=2229
Content-Length: {length}
Content-Type: application/sdp
Contact: <sip:user@host28.example.com>

${sessionBody}`),
    // Nothing is passed on by the second Via here, so nobody is flooded.
    verdict: 'taken',
  },
  {
    section: '3.3.11 zeromf',
    bytes: bytesOf(`
OPTIONS sip:user@example.com SIP/2.0
To: sip:user@example.com
From: sip:caller@example.net;tag=3ghsd41
Call-ID: zeromf.jfasdlfnm2o2l43r5u0asdfas
CSeq: 39234321 OPTIONS
Via: SIP/2.0/UDP host1.example.com;branch=z9hG4bKkdjuw2349i
Max-Forwards: 0
Content-Length: 0

`),
    // A user agent forwards nothing: it answers.
    verdict: 'taken',
  },
  {
    section: '3.3.12 cparam01',
    bytes: bytesOf(`
REGISTER sip:example.com SIP/2.0
Via: SIP/2.0/UDP saturn.example.com:5060;branch=z9hG4bKkdjuw
Max-Forwards: 70
From: sip:watson@example.com;tag=DkfVgjkrtMwaerKKpe
To: sip:watson@example.com
Call-ID: cparam01.70710@saturn.example.com
CSeq: 2 REGISTER
Contact: sip:+19725552222@gw1.example.net;unknownparam
l: 0

`),
    verdict: 'taken',
    holds: {
      'the parameter is the header’s': (message) =>
        addressOf(message, 'Contact')?.params.has('unknownparam') === true &&
        addressOf(message, 'Contact')?.uri === 'sip:+19725552222@gw1.example.net',
    },
  },
  {
    section: '3.3.13 cparam02',
    bytes: bytesOf(`
REGISTER sip:example.com SIP/2.0
Via: SIP/2.0/UDP saturn.example.com:5060;branch=z9hG4bKkdjuw
Max-Forwards: 70
From: sip:watson@example.com;tag=838293
To: sip:watson@example.com
Call-ID: cparam02.70710@saturn.example.com
CSeq: 3 REGISTER
Contact: <sip:+19725552222@gw1.example.net;unknownparam>
l: 0

`),
    verdict: 'taken',
    holds: {
      'the parameter is the URI’s': (message) => {
        const contact = addressOf(message, 'Contact')
        return contact?.params.size === 0 && readSipUri(contact.uri)?.params.has('unknownparam') === true
      },
    },
  },
  {
    section: '3.3.14 regescrt',
    bytes: bytesOf(`
REGISTER sip:example.com SIP/2.0
To: sip:user@example.com
From: sip:user@example.com;tag=8
Max-Forwards: 70
Call-ID: regescrt.k345asrl3fdbv@192.0.2.1
CSeq: 14398234 REGISTER
Via: SIP/2.0/UDP host5.example.com;branch=z9hG4bKkdjuw
M: <sip:user@example.com?Route=%3Csip:sip.example.com%3E>
L:0

`),
    verdict: 'taken',
    holds: {
      'the headers belong to the URI': (message) =>
        addressesOf(message, 'Contact').length === 1 &&
        readSipUri(addressOf(message, 'Contact')!.uri)?.headers === 'Route=%3Csip:sip.example.com%3E',
    },
  },
  {
    section: '3.3.15 sdp01',
    bytes: bytesOf(`
INVITE sip:user@example.com SIP/2.0
To: sip:j_user@example.com
Contact: <sip:caller@host15.example.net>
From: sip:caller@example.net;tag=234
Max-Forwards: 5
Call-ID: sdp01.ndaksdj9342dasdd
Accept: text/nobodyKnowsThis
CSeq: 8 INVITE
Via: SIP/2.0/UDP 192.0.2.15;branch=z9hG4bKkdjuw
Content-Length: {length}
Content-Type: application/sdp

${sessionBody}`),
    verdict: 406,
  },
  {
    section: '3.4.1 inv2543',
    bytes: bytesOf(`
INVITE sip:UserB@example.com SIP/2.0
Via: SIP/2.0/UDP iftgw.example.com
From: <sip:+13035551111@ift.client.example.net;user=phone>
Record-Route: <sip:UserB@example.com;maddr=ss1.example.com>
To: sip:+16505552222@ss1.example.net;user=phone
Call-ID: inv2543.1717@ift.client.example.com
CSeq: 56 INVITE
Contact: <sip:+13035551111@iftgw.example.com>
Content-Type: application/sdp
Content-Length: {length}

v=0
o=faxgw1 2890844527 2890844527 IN IP4 192.0.2.2
s=-
c=IN IP4 192.0.2.2
t=0 0
m=audio 49170 RTP/AVP 0
a=rtpmap:0 PCMU/8000
`),
    verdict: 'taken',
    holds: {
      'there is no tag, no branch and no Max-Forwards': (message) =>
        tagOf(message, 'From') === null &&
        branchOf(topViaOf(message)!) === null &&
        headerOf(message, 'Max-Forwards') === null,
    },
  },
]
