/** Owns session descriptions without what tells whose they are: lines that are known to tell nothing stay, addresses and credentials are others, the rest goes. */
import type { Aliases } from './aliases.ts'

/** Codecs, directions and how sound is packed. */
const harmless =
  /^(?:v=0|t=|m=|a=(?:rtpmap|fmtp|ptime|maxptime|sendrecv|sendonly|recvonly|inactive|rtcp-mux|rtcp-mux-only|rtcp-rsize|rtcp-fb|setup|mid|group|extmap|extmap-allow-mixed|ice-lite|ice-options|end-of-candidates|crypto|silenceSupp|bundle-only)\b)/

export function anonymousSdp(sdp: string, aliases: Aliases): string {
  return sdp
    .split(/\r?\n/)
    .flatMap((line) => anonymousLine(line, aliases) ?? [])
    .join('\r\n')
}

/** Null: it goes. */
function anonymousLine(line: string, { address, token }: Aliases): string | null {
  if (line === '') return line
  const [, family = '4', place = ''] = /IN IP([46]) (\S+)/.exec(line) ?? []
  if (line.startsWith('o=')) return `o=- 1 1 IN IP${family} ${address(place)}`
  if (line.startsWith('s=')) return 's=-'
  if (line.startsWith('c=')) return `c=IN IP${family} ${address(place)}`
  if (line.startsWith('a=ice-ufrag:')) return `a=ice-ufrag:${token('ufrag', line).slice(0, 8)}`
  if (line.startsWith('a=ice-pwd:')) return `a=ice-pwd:${token('pwd', line)}${token('pwd', `${line}2`)}`
  if (line.startsWith('a=fingerprint:'))
    return `a=fingerprint:sha-256 ${Array.from({ length: 32 }, () => '00').join(':')}`
  if (line.startsWith('a=candidate:')) return anonymousCandidate(line, address)
  if (line.startsWith('a=crypto:')) return line.replace(/inline:\S+/, `inline:${'A'.repeat(40)}`)
  if (line.startsWith('a=ssrc:')) return 'a=ssrc:1 cname:anonymous'
  // Port 0 refuses the section, or has it go with its bundle.
  if (line.startsWith('m=')) return line.replace(/^(m=\w+) [1-9]\d*/, '$1 9')
  return harmless.test(line) ? line : null
}

/** `candidate:<foundation> <component> udp <priority> <address> <port> typ host …`: what follows may name another address. */
export function anonymousCandidate(line: string, address: (given: string) => string): string {
  const [, before = 'candidate:1 1 udp 1', place = '192.0.2.1', type = 'host'] =
    /^((?:a=)?candidate:\S+ \d+ \S+ \d+) (\S+) \d+ typ (\w+)/.exec(line) ?? []
  return `${before.replace(/candidate:\S+/, 'candidate:1')} ${address(place)} 9 typ ${type}`
}
