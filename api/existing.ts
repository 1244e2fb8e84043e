/** Owns the step from "there is none" to its answer. */
import { notFound } from '../model/problem.ts'

export function existing<Resource>(found: Resource | null): Resource {
  if (found === null) throw notFound()
  return found
}
