/**
 * Owns the acoustic model as lines and speakers ask for it. It was made of wide sound: over a telephone, with what is missing put back by a guess, the same
 * sounds look otherwise and vary more. This is put into its Gaussians before it is loaded, so that hearing a telephone costs no more than anything else.
 */
import { noisyChanges, telephoneChanges, unusualChanges, type Changes } from './line-changes.ts'

/** `noisy` and `unusual` are for what was not understood of a telephone and of a wide line: they take more for speech, and less surely. */
export type LineModel = 'wide' | 'telephone' | 'noisy' | 'unusual'

/** Files of the model, as the package brings them. */
export type Gaussians = { readonly means: Uint8Array; readonly variances: Uint8Array }

const streams = 3
const features = 13
const changesOf: Readonly<Record<Exclude<LineModel, 'wide'>, Changes>> = {
  telephone: telephoneChanges,
  noisy: noisyChanges,
  unusual: unusualChanges,
}

/** Copies: the files stay as they are. Throws for files of another shape than the version this was written for. */
export function gaussiansOf(model: LineModel, files: Gaussians): Gaussians {
  if (model === 'wide') return files
  const [means, variances] = [opened(files.means), opened(files.variances)]
  if (means.values.length !== variances.values.length) throw new Error('means and variances are not of one model')
  for (const [stream, { turn, shift, spread }] of changesOf[model].entries()) {
    const weights = Float64Array.from(turn.flat())
    change(means, stream, weights, shift)
    change(
      variances,
      stream,
      weights.map((weight) => weight * weight),
      spread,
    )
  }
  return { means: closed(means), variances: closed(variances) }
}

/** Each of the stream's vectors is turned by the rows of `weights`, and `added` to it. Makes nothing on its way: there are 16,000, and callers wait for them. */
function change(of: Opened, stream: number, weights: Float64Array, added: readonly number[]): void {
  const { values, densities } = of
  const given = new Float64Array(features)
  const length = densities * features
  for (let book = stream * length; book < values.length; book += streams * length)
    for (let at = book; at < book + length; at += features) {
      for (let index = 0; index < features; index++) given[index] = values[at + index]!
      for (let index = 0; index < features; index++) {
        let sum = added[index]!
        for (let from = 0; from < features; from++) sum += weights[index * features + from]! * given[from]!
        values[at + index] = sum
      }
    }
}

/** A parameter file of sphinx: a text, the sizes, the values. */
type Opened = {
  readonly sizes: Uint32Array<ArrayBuffer>
  readonly densities: number
  readonly values: Float32Array<ArrayBuffer>
}

/** Byte order, codebooks, streams, densities, the length of each stream, the number of values. */
const sizeCount = 5 + streams
const endOfText = 'endhdr\n'
/** Without the checksum that the values had. */
const text = `s3\nversion 1.0\n${endOfText}`

function opened(given: Uint8Array): Opened {
  const file = new Uint8Array(given)
  const from = Buffer.from(file.buffer).indexOf(endOfText) + endOfText.length
  const sizes = new Uint32Array(file.slice(from, from + 4 * sizeCount).buffer)
  const [, , count, densities = 0, ...lengths] = sizes
  const total = lengths.pop() ?? 0
  const start = from + 4 * sizeCount
  if (count !== streams || lengths.some((length) => length !== features) || file.length < start + 4 * total)
    throw new Error('the acoustic model has another shape than the version this was written for')
  return { sizes, densities, values: new Float32Array(file.slice(start, start + 4 * total).buffer) }
}

const closed = ({ sizes, values }: Opened): Uint8Array =>
  new Uint8Array(Buffer.concat([Buffer.from(text), new Uint8Array(sizes.buffer), new Uint8Array(values.buffer)]))
