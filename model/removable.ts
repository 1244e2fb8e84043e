/** Owns how a change takes a setting away: by null. A setting that a resource may be without can be taken away, any other one cannot. */
import type { z } from 'zod'

export type Removable<Shape> = {
  [Key in keyof Shape]: Shape[Key] extends z.ZodType ? z.ZodNullable<Shape[Key]> : never
}

export const removable = <Shape extends Readonly<Record<string, z.ZodType>>>(shape: Shape): Removable<Shape> =>
  Object.fromEntries(Object.entries(shape).map(([name, field]) => [name, field.nullable()])) as Removable<Shape>
