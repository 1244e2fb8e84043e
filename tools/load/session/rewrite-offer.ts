/**
 * Owns how a recorded offer of a browser becomes one of a new call: what it offers stays, and the end that offers it is another one, with credentials of ICE,
 * candidates, fingerprint and streams of its own.
 */

const ofOldEnd =
  /^a=(?:candidate|ice-ufrag|ice-pwd|fingerprint|ssrc|ssrc-group|rtcp:|remote-candidates|end-of-candidates)/
const ofNewEnd = /^a=(?:candidate|ice-ufrag|ice-pwd|fingerprint|ssrc|end-of-candidates)/

/** `own` is a whole offer of the end that sends it. */
export function rewriteOffer(recorded: string, own: string): string {
  const ownLines = linesOf(own)
  const added = ownLines.filter((line) => ofNewEnd.test(line))
  const ownPort = /^m=audio (\d+) /m.exec(own)?.[1] ?? '9'
  const ownPlace = ownLines.find((line) => line.startsWith('c=')) ?? 'c=IN IP4 0.0.0.0'
  const ownOrigin = ownLines.find((line) => line.startsWith('o='))
  let isSound = false
  const lines = linesOf(recorded).flatMap((line) => {
    if (ofOldEnd.test(line)) return []
    if (line.startsWith('o=')) return [ownOrigin ?? line]
    if (line.startsWith('c=')) return [ownPlace]
    if (!line.startsWith('m=')) return [line]
    const before = isSound ? added : []
    isSound = line.startsWith('m=audio')
    return [...before, isSound ? line.replace(/^m=audio \d+/, `m=audio ${ownPort}`) : line]
  })
  return [...lines, ...(isSound ? added : []), ''].join('\r\n')
}

const linesOf = (sdp: string): string[] => sdp.split(/\r?\n/).filter((line) => line !== '')
