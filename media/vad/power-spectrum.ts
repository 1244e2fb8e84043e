/** Owns the power spectrum of a window of sound: a Hann window and a Fourier transform (radix 2). Pure; its buffers are its own: one for each line. */

export type PowerSpectrum = {
  /** From frequency 0 to half the rate, `size / 2` values of a ring that begins at `from`; valid until the next call. */
  of(ring: Float64Array, from: number): Float64Array
}

/** `size`: a power of two. Two real samples go through as one complex one. */
export function createPowerSpectrum(size: number): PowerSpectrum {
  const half = size / 2
  const window = Float64Array.from({ length: size }, (_, i) => 0.5 - 0.5 * Math.cos((2 * Math.PI * (i + 0.5)) / size))
  const cosines = Float64Array.from({ length: half }, (_, i) => Math.cos((2 * Math.PI * i) / size))
  const sines = Float64Array.from({ length: half }, (_, i) => Math.sin((2 * Math.PI * i) / size))
  const places = reversedPlaces(half)
  const real = new Float64Array(half)
  const imaginary = new Float64Array(half)
  const powers = new Float64Array(half)

  const fill = (ring: Float64Array, from: number): void => {
    for (let i = 0; i < half; i++) {
      const place = places[i]!
      real[place] = ring[(from + 2 * i) % size]! * window[2 * i]!
      imaginary[place] = ring[(from + 2 * i + 1) % size]! * window[2 * i + 1]!
    }
  }
  const transform = (): void => {
    for (let width = 1; width < half; width *= 2) {
      const step = half / width
      for (let start = 0; start < half; start += 2 * width)
        for (let k = 0; k < width; k++) {
          const low = start + k
          const high = low + width
          const c = cosines[k * step]!
          const s = sines[k * step]!
          const re = real[high]! * c + imaginary[high]! * s
          const im = imaginary[high]! * c - real[high]! * s
          real[high] = real[low]! - re
          imaginary[high] = imaginary[low]! - im
          real[low]! += re
          imaginary[low]! += im
        }
    }
  }
  return {
    of(ring, from) {
      fill(ring, from)
      transform()
      for (let k = 0; k < half; k++) {
        const other = (half - k) % half
        const evenRe = real[k]! + real[other]!
        const evenIm = imaginary[k]! - imaginary[other]!
        const oddRe = imaginary[k]! + imaginary[other]!
        const oddIm = real[other]! - real[k]!
        const re = evenRe + oddRe * cosines[k]! + oddIm * sines[k]!
        const im = evenIm + oddIm * cosines[k]! - oddRe * sines[k]!
        powers[k] = (re * re + im * im) / 4
      }
      return powers
    },
  }
}

/** Where each sample goes before the transform: its number with the bits turned round. */
function reversedPlaces(length: number): Uint16Array {
  const bits = Math.log2(length)
  return Uint16Array.from({ length }, (_, index) => {
    let reversed = 0
    for (let bit = 0; bit < bits; bit++) reversed |= ((index >> bit) & 1) << (bits - 1 - bit)
    return reversed
  })
}
