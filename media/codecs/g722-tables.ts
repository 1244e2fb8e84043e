/** Owns the numbers of G.722: tables 11 to 21 of ITU-T G.722. */

/** Half of the filter that parts the bands; the other half mirrors it. */
export const filterTaps = Int32Array.from([3, -11, 12, 32, -210, 951, 3876, -805, 362, -156, 53, -11])

/** Bounds between the levels of the lower band, in 4096ths of the step; rank 1 to 29. */
export const lowerDecisions = Int32Array.from([
  0, 35, 72, 110, 150, 190, 233, 276, 323, 370, 422, 473, 530, 587, 650, 714, 786, 858, 940, 1023, 1121, 1219, 1339,
  1458, 1612, 1765, 1980, 2195, 2557, 2919,
])

/** Codes of the lower band by rank, for differences below zero and for others. */
export const lowerNegative = Int32Array.from([0, 63, 62, ...downFrom(31, 28)])
export const lowerPositive = Int32Array.from([0, ...downFrom(61, 30)])

/** The middle of a level of the lower band by its four first bits, in 32768ths of the step. */
export const lowerInverse = Int32Array.from([
  0, -20456, -12896, -8968, -6288, -4240, -2584, -1200, 20456, 12896, 8968, 6288, 4240, 2584, 1200, 0,
])

/** How far from zero such a level is. */
export const lowerRank = Int32Array.from([0, 7, 6, 5, 4, 3, 2, 1, 7, 6, 5, 4, 3, 2, 1, 0])
/** What a level of that rank adds to the logarithm of the step. */
export const lowerLog = Int32Array.from([-60, -30, 58, 172, 334, 538, 1198, 3042])

/** The middle of a level of the lower band by all its six bits. */
export const decoded6 = Int32Array.from([
  -136, -136, -136, -136, -24808, -21904, -19008, -16704, -14984, -13512, -12280, -11192, -10232, -9360, -8576, -7856,
  -7192, -6576, -6000, -5456, -4944, -4464, -4008, -3576, -3168, -2776, -2400, -2032, -1688, -1360, -1040, -728, 24808,
  21904, 19008, 16704, 14984, 13512, 12280, 11192, 10232, 9360, 8576, 7856, 7192, 6576, 6000, 5456, 4944, 4464, 4008,
  3576, 3168, 2776, 2400, 2032, 1688, 1360, 1040, 728, 432, 136, -432, -136,
])

export const higherDecision = 564
export const higherInverse = Int32Array.from([-7408, -1616, 7408, 1616])
export const higherRank = Int32Array.from([2, 1, 2, 1])
export const higherLog = Int32Array.from([0, -214, 798])

/** 2048 · 2^(i/32). */
export const stepMantissas = Int32Array.from([
  2048, 2093, 2139, 2186, 2233, 2282, 2332, 2383, 2435, 2489, 2543, 2599, 2656, 2714, 2774, 2834, 2896, 2960, 3025,
  3091, 3158, 3228, 3298, 3371, 3444, 3520, 3597, 3676, 3756, 3838, 3922, 4008,
])

function downFrom(first: number, count: number): number[] {
  return Array.from({ length: count }, (_, i) => first - i)
}
