/** Owns the valid messages of RFC 4475 §3.1.1: unusual, and yet to be taken. */
import { addressOf, tagOf } from '../../../sip/server/message/address.ts'
import { headerOf, headersOf, valuesOf } from '../../../sip/server/message/header-fields.ts'
import { cseqOf } from '../../../sip/server/message/numbered-fields.ts'
import { readSipUri } from '../../../sip/server/message/uri.ts'
import { branchOf, readVia, topViaOf } from '../../../sip/server/message/via.ts'
import { bytesOf, sessionBody, type TortureMessage } from './torture-message.ts'

export const validMessages: readonly TortureMessage[] = [
  {
    section: '3.1.1.1 wsinv',
    bytes: bytesOf(`
INVITE sip:vivekg@chair-dnrc.example.com;unknownparam SIP/2.0
TO :
 sip:vivekg@chair-dnrc.example.com ;   tag    = 1918181833n
from   : "J Rosenberg \\\\\\""       <sip:jdrosen@example.com>
  ;
  tag = 98asjd8
MaX-fOrWaRdS: 0068
Call-ID: wsinv.ndaksdj@192.0.2.1
Content-Length   : {length}
cseq: 0009
  INVITE
Via  : SIP  /   2.0
 /UDP
    192.0.2.2;branch=390skdjuw
s :
NewFangledHeader:   newfangled value
 continued newfangled value
UnknownHeaderWithUnusualValue: ;;,,;;,;
Content-Type: application/sdp
Route:
 <sip:services.example.com;lr;unknownwith=value;unknown-no-value>
v:  SIP  / 2.0  / TCP     spindle.example.com   ;
  branch  =   z9hG4bK9ikj8  ,
 SIP  /    2.0   / UDP  192.168.255.111   ; branch=
 z9hG4bK30239
m:"Quoted string \\"\\"" <sip:jdrosen@example.com> ; newparam =
      newvalue ;
  secondparam ; q = 0.33

${sessionBody}`),
    verdict: 'taken',
    holds: {
      'tags are read through spaces and line breaks': (message) =>
        tagOf(message, 'To') === '1918181833n' && tagOf(message, 'From') === '98asjd8',
      'the display name is without its escapes': (message) =>
        addressOf(message, 'From')?.displayName === 'J Rosenberg \\"',
      'three Vias stand in two fields, one under its short name': (message) =>
        valuesOf(message, 'Via')
          .map((value) => readVia(value)?.transport)
          .join() === 'UDP,TCP,UDP',
      'CSeq is 9': (message) => cseqOf(message)?.number === 9,
      'an empty Subject is a Subject': (message) => headerOf(message, 'Subject') === '',
      'Contact has its parameters': (message) =>
        addressOf(message, 'Contact')?.params.get('q') === '0.33' &&
        addressOf(message, 'Contact')?.params.get('newparam') === 'newvalue',
    },
  },
  {
    section: '3.1.1.2 intmeth',
    bytes: bytesOf(`
!interesting-Method0123456789_*+\`.%indeed'~ sip:1_unusual.URI~(to-be!sure)&isn't+it$/crazy?,/;;*:&it+has=1,weird!*pas$wo~d_too.(doesn't-it)@example.com SIP/2.0
Via: SIP/2.0/TCP host1.example.com;branch=z9hG4bK-.!%66*_+\`'~
To: "BEL:\\{hex:07} NUL:\\{hex:00} DEL:\\{hex:7F}" <sip:1_unusual.URI~(to-be!sure)&isn't+it$/crazy?,/;;*@example.com>
From: token1~\` token2'+_ token3*%!.- <sip:mundane@example.com>;fromParam''~+*_!.-%="{hex:D180D0B0D0B1D0BED182D0B0D18ED189D0B8D0B9}";tag=_token~1'+\`*%!-.
Call-ID: intmeth.word%ZK-!.*_+'@word\`~)(><:\\/"][?}{
CSeq: 139122385 !interesting-Method0123456789_*+\`.%indeed'~
Max-Forwards: 255
extensionHeader-!.%*+_\`'~:{hex:EFBBBFE5A4A7E5819CE99BBB}
Content-Length: 0

`),
    verdict: 501,
    holds: {
      'the method is its letters exactly': (message) =>
        message.kind === 'request' && message.method === "!interesting-Method0123456789_*+`.%indeed'~",
      'user and password of the Request-URI are told apart': (message) =>
        message.kind === 'request' &&
        readSipUri(message.uri)?.user === "1_unusual.URI~(to-be!sure)&isn't+it$/crazy?,/;;*" &&
        readSipUri(message.uri)?.password === "&it+has=1,weird!*pas$wo~d_too.(doesn't-it)",
      'control characters stand in a display name': (message) =>
        addressOf(message, 'To')?.displayName === 'BEL:\u0007 NUL:\u0000 DEL:\u007f',
      'the tag has all its letters': (message) => tagOf(message, 'From') === "_token~1'+`*%!-.",
      'the branch has all its letters': (message) => branchOf(topViaOf(message)!) === "z9hG4bK-.!%66*_+`'~",
      'UTF-8 comes through': (message) => message.headers.some(({ value }) => value.endsWith('大停電')),
    },
  },
  {
    section: '3.1.1.3 esc01',
    bytes: bytesOf(`
INVITE sip:sips%3Auser%40example.com@example.net SIP/2.0
To: sip:%75se%72@example.com
From: <sip:I%20have%20spaces@example.net>;tag=938
Max-Forwards: 87
i: esc01.239409asdfakjkn23onasd0-3234
CSeq: 234234 INVITE
Via: SIP/2.0/UDP host5.example.net;branch=z9hG4bKkdjuw
C: application/sdp
Contact:
  <sip:cal%6Cer@host5.example.net;%6C%72;n%61me=v%61lue%25%34%31>
Content-Length: {length}

${sessionBody}`),
    verdict: 'taken',
    holds: {
      'an escaped @ belongs to the user': (message) =>
        message.kind === 'request' && readSipUri(message.uri)?.user === 'sips:user@example.com',
      'escapes of To are undone': (message) => readSipUri(addressOf(message, 'To')!.uri)?.user === 'user',
      'escapes are undone once: %2541 stays %41': (message) => {
        const uri = readSipUri(addressOf(message, 'Contact')!.uri)
        return uri?.user === 'caller' && uri.params.has('lr') && uri.params.get('name') === 'value%41'
      },
    },
  },
  {
    section: '3.1.1.4 escnull',
    bytes: bytesOf(`
REGISTER sip:example.com SIP/2.0
To: sip:null-%00-null@example.com
From: sip:null-%00-null@example.com;tag=839923423
Max-Forwards: 70
Call-ID: escnull.39203ndfvkjdasfkq3w4otrq0adsfdfnavd
CSeq: 14398234 REGISTER
Via: SIP/2.0/UDP host5.example.com;branch=z9hG4bKkdjuw
Contact: <sip:%00@host5.example.com>
Contact: <sip:%00%00@host5.example.com>
L:0

`),
    verdict: 'taken',
    holds: {
      'escaped nulls end nothing': (message) =>
        readSipUri(addressOf(message, 'To')!.uri)?.user === 'null-\u0000-null' &&
        headersOf(message, 'Contact').length === 2,
    },
  },
  {
    section: '3.1.1.5 esc02',
    bytes: bytesOf(`
RE%47IST%45R sip:registrar.example.com SIP/2.0
To: "%Z%45" <sip:resource@example.com>
From: "%Z%45" <sip:resource@example.com>;tag=f232jadfj23
Call-ID: esc02.asdfnqwo34rq23i34jrjasdcnl23nrlknsdf
Via: SIP/2.0/TCP host.example.com;branch=z9hG4bK209%fzsnel234
CSeq: 29344 RE%47IST%45R
Max-Forwards: 70
Contact: <sip:alias1@host1.example.com>
C%6Fntact: <sip:alias2@host2.example.com>
Contact: <sip:alias3@host3.example.com>
l: 0

`),
    verdict: 501,
    holds: {
      'a method is never unescaped': (message) => message.kind === 'request' && message.method === 'RE%47IST%45R',
      'nor a display name': (message) => addressOf(message, 'To')?.displayName === '%Z%45',
      'nor the name of a header': (message) => headersOf(message, 'Contact').length === 2,
    },
  },
  {
    section: '3.1.1.6 lwsdisp',
    bytes: bytesOf(`
OPTIONS sip:user@example.com SIP/2.0
To: sip:user@example.com
From: caller<sip:caller@example.com>;tag=323
Max-Forwards: 70
Call-ID: lwsdisp.1234abcd@funky.example.com
CSeq: 60 OPTIONS
Via: SIP/2.0/UDP funky.example.com;branch=z9hG4bKkdjuw
l: 0

`),
    verdict: 'taken',
    holds: {
      'the name ends at the bracket': (message) => addressOf(message, 'From')?.displayName === 'caller',
    },
  },
  {
    section: '3.1.1.7 longreq',
    bytes: bytesOf(`
INVITE sip:user@example.com SIP/2.0
To: "I have a user name of {repeat:10:extreme}{repeat:10: proportion}"<sip:user@example.com:6000;unknownparam1=very{repeat:20:long}value;longparam{repeat:25:name}=shortvalue;very{repeat:25:long}ParameterNameWithNoValue>
F: sip:{repeat:5:amazinglylongcallername}@example.net;tag=12{repeat:50:982}424;unknownheaderparam{repeat:20:name}={repeat:15:value};unknownValueless{repeat:10:paramname}
Call-ID: longreq.one{repeat:20:really}longcallid
CSeq: 3882340 INVITE
Unknown-{repeat:20:Long}-Name: unknown-{repeat:20:long}-value; unknown-{repeat:20:long}-parameter-name = unknown-{repeat:20:long}-parameter-value
Via: SIP/2.0/TCP sip33.example.com
v: SIP/2.0/TCP sip32.example.com
V: SIP/2.0/TCP sip31.example.com
Via: SIP/2.0/TCP sip30.example.com
ViA: SIP/2.0/TCP sip29.example.com
VIa: SIP/2.0/TCP sip28.example.com
VIA: SIP/2.0/TCP sip27.example.com
via: SIP/2.0/TCP sip26.example.com
viA: SIP/2.0/TCP sip25.example.com
vIa: SIP/2.0/TCP sip24.example.com
vIA: SIP/2.0/TCP sip23.example.com
V :  SIP/2.0/TCP sip22.example.com
v :  SIP/2.0/TCP sip21.example.com
V  : SIP/2.0/TCP sip20.example.com
v  : SIP/2.0/TCP sip19.example.com
Via : SIP/2.0/TCP sip18.example.com
Via  : SIP/2.0/TCP sip17.example.com
Via: SIP/2.0/TCP sip16.example.com
Via: SIP/2.0/TCP sip15.example.com
Via: SIP/2.0/TCP sip14.example.com
Via: SIP/2.0/TCP sip13.example.com
Via: SIP/2.0/TCP sip12.example.com
Via: SIP/2.0/TCP sip11.example.com
Via: SIP/2.0/TCP sip10.example.com
Via: SIP/2.0/TCP sip9.example.com
Via: SIP/2.0/TCP sip8.example.com
Via: SIP/2.0/TCP sip7.example.com
Via: SIP/2.0/TCP sip6.example.com
Via: SIP/2.0/TCP sip5.example.com
Via: SIP/2.0/TCP sip4.example.com
Via: SIP/2.0/TCP sip3.example.com
Via: SIP/2.0/TCP sip2.example.com
Via: SIP/2.0/TCP sip1.example.com
Via: SIP/2.0/TCP host.example.com;received=192.0.2.5;branch=very{repeat:50:long}branchvalue
Max-Forwards: 70
Contact: <sip:{repeat:5:amazinglylongcallername}@host5.example.net>
Content-Type: application/sdp
l: {length}

${sessionBody}`),
    verdict: 'taken',
    holds: {
      'all 34 Vias are there in their order': (message) => {
        const hosts = valuesOf(message, 'Via').map((value) => readVia(value)?.host)
        return hosts.length === 34 && hosts[0] === 'sip33.example.com' && hosts[33] === 'host.example.com'
      },
      'the tag is whole': (message) => tagOf(message, 'From') === `12${'982'.repeat(50)}424`,
    },
  },
  {
    section: '3.1.1.8 dblreq',
    bytes: bytesOf(`
REGISTER sip:example.com SIP/2.0
To: sip:j.user@example.com
From: sip:j.user@example.com;tag=43251j3j324
Max-Forwards: 8
I: dblreq.0ha0isndaksdj99sdfafnl3lk233412
Contact: sip:j.user@host.example.com
CSeq: 8 REGISTER
Via: SIP/2.0/UDP 192.0.2.125;branch=z9hG4bKkdjuw23492
Content-Length: 0


INVITE sip:joe@example.com SIP/2.0
t: sip:joe@example.com
From: sip:caller@example.net;tag=141334
Max-Forwards: 8
Call-ID: dblreq.0ha0isnda977644900765@192.0.2.15
CSeq: 8 INVITE
Via: SIP/2.0/UDP 192.0.2.15;branch=z9hG4bKkdjuw380234
Content-Type: application/sdp
Content-Length: 150

${sessionBody}`),
    verdict: 'taken',
    holds: {
      'only the REGISTER is there, and it has no body': (message) =>
        message.kind === 'request' && message.method === 'REGISTER' && message.body.length === 0,
    },
  },
  {
    section: '3.1.1.9 semiuri',
    bytes: bytesOf(`
OPTIONS sip:user;par=u%40example.net@example.com SIP/2.0
To: sip:j_user@example.com
From: sip:caller@example.org;tag=33242
Max-Forwards: 3
Call-ID: semiuri.0ha0isndaksdj
CSeq: 8 OPTIONS
Accept: application/sdp, application/pkcs7-mime,
        multipart/mixed, multipart/signed,
        message/sip, message/sipfrag
Via: SIP/2.0/UDP 192.0.2.1;branch=z9hG4bKkdjuw
l: 0

`),
    verdict: 'taken',
    holds: {
      'the semicolon belongs to the user': (message) =>
        message.kind === 'request' && readSipUri(message.uri)?.user === 'user;par=u@example.net',
      'six types are accepted': (message) => valuesOf(message, 'Accept').length === 6,
    },
  },
  {
    section: '3.1.1.10 transports',
    bytes: bytesOf(`
OPTIONS sip:user@example.com SIP/2.0
To: sip:user@example.com
From: <sip:caller@example.com>;tag=323
Max-Forwards: 70
Call-ID:  transports.kijh4akdnaqjkwendsasfdj
Accept: application/sdp
CSeq: 60 OPTIONS
Via: SIP/2.0/UDP t1.example.com;branch=z9hG4bKkdjuw
Via: SIP/2.0/SCTP t2.example.com;branch=z9hG4bKklasjdhf
Via: SIP/2.0/TLS t3.example.com;branch=z9hG4bK2980unddj
Via: SIP/2.0/UNKNOWN t4.example.com;branch=z9hG4bKasd0f3en
Via: SIP/2.0/TCP t5.example.com;branch=z9hG4bK0a9idfnee
l: 0

`),
    verdict: 'taken',
  },
  {
    section: '3.1.1.11 mpart01',
    bytes: bytesOf(`
MESSAGE sip:kumiko@example.org SIP/2.0
Via: SIP/2.0/UDP 127.0.0.1:5070;branch=z9hG4bK-d87543-4dade06d0bdb11ee-1--d87543-;rport
Max-Forwards: 70
Route: <sip:127.0.0.1:5080>
Identity: r5mwreLuyDRYBi/0TiPwEsY3rEVsk/G2WxhgTV1PF7hHuL
Contact: <sip:fluffy@127.0.0.1:5070>
To: <sip:kumiko@example.org>
From: <sip:fluffy@example.com>;tag=2fb0dcc9
Call-ID: 3d9485ad0c49859b@Zmx1ZmZ5LW1hYy0xNi5sb2NhbA..
CSeq: 1 MESSAGE
Content-Transfer-Encoding: binary
Content-Type: multipart/mixed;boundary=7a9cbec02ceef655
Date: Sat, 15 Oct 2005 04:44:56 GMT
User-Agent: SIPimp.org/0.2.5 (curses)
Content-Length: {length}

--7a9cbec02ceef655
Content-Type: text/plain
Content-Transfer-Encoding: binary

Hello
--7a9cbec02ceef655
Content-Type: application/octet-stream
Content-Transfer-Encoding: binary

{hex:3082015206092A864886F70D0107A08201433082013F0D0A0D0A00FFFE80C0}
--7a9cbec02ceef655--
`),
    verdict: 405,
    holds: {
      'bytes that are no text come through': (message) =>
        Buffer.from(message.body).includes(Buffer.from('0D0A0D0A00FFFE80C0', 'hex')),
    },
  },
  {
    section: '3.1.1.12 unreason',
    bytes: bytesOf(`
SIP/2.0 200 = 2**3 * 5**2 {hex:D0BDD0BE20D181D182D0BE20D0B4D0B5D0B2D18FD0BDD0BED181D182D0BE20D0B4D0B5D0B2D18FD182D18C202D20D0BFD180D0BED181D182D0BED0B5}
Via: SIP/2.0/UDP 192.0.2.198;branch=z9hG4bK1324923
Call-ID: unreason.1234ksdfak3j2erwedfsASdf
CSeq: 35 INVITE
From: sip:user@example.com;tag=11141343
To: sip:user@example.edu;tag=2229
Content-Length: {length}
Content-Type: application/sdp
Contact: <sip:user@host198.example.com>

${sessionBody}`),
    verdict: 'taken',
    holds: {
      'the reason comes through': (message) =>
        message.kind === 'response' && message.reason.startsWith('= 2**3 * 5**2 но сто') && message.status === 200,
    },
  },
  {
    section: '3.1.1.13 noreason',
    bytes: bytesOf(`
SIP/2.0 100{hex:20}
Via: SIP/2.0/UDP 192.0.2.105;branch=z9hG4bK2398ndaoe
Call-ID: noreason.asndj203insdf99223ndf
CSeq: 35 INVITE
From: <sip:user@example.com>;tag=39ansfi3
To: <sip:user@example.edu>;tag=902jndnke3
Content-Length: 0
Contact: <sip:user@host105.example.com>

`),
    verdict: 'taken',
    holds: { 'the reason is empty': (message) => message.kind === 'response' && message.reason === '' },
  },
]
