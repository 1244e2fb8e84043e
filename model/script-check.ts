/** Owns the port by which whoever saves a call script learns what is wrong with it. */
import { z } from 'zod'

export const ScriptError = z.object({
  /** Counts from 1. */
  line: z.number().int().positive(),
  message: z.string(),
})
export type ScriptError = Readonly<z.infer<typeof ScriptError>>

/** Errors by their lines; none for a script that every engine can follow, and for prose, which is for models. */
export type ScriptCheck = (text: string) => readonly ScriptError[]
