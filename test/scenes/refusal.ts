/** Owns how a test reads a refusal: type and paths, or null when there was none. Anything but a Problem goes on. */
import { Problem } from '../../model/problem.ts'

export async function refusalOf(asked: Promise<unknown>): Promise<readonly [string, ...string[]] | null> {
  try {
    await asked
    return null
  } catch (error) {
    if (!(error instanceof Problem)) throw error
    return [error.type, ...(error.issues ?? []).map(({ path }) => path)]
  }
}
