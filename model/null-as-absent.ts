/**
 * Owns that null reads as absent where a field may be absent and null says nothing of its own: systems that fill in forms send what they do not
 * know as null. Where null means something (it takes a value away, it is a value) it stays.
 */
import type { z } from 'zod'

type Fields = Readonly<Record<string, unknown>>

/** A copy without those fields; what has none of them comes back as it is. */
export function nullAsAbsent(schema: z.ZodType, value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value
  const form = formOf(schema)
  if (Array.isArray(value)) return form.type === 'array' ? eachOf(value, form.element as z.ZodType) : value
  if (form.type === 'object') return withoutAbsent(value as Fields, (name) => fieldOf(form, name))
  // The values of a map may be any JSON, null too, and a mebibyte of it: they are not looked into.
  const inside = form.type === 'record' ? (form.valueType as z.ZodType) : null
  return inside && !takes(inside, null)
    ? withoutAbsent(value as Fields, () => ({ schema: inside, mayBeAbsent: true }))
    : value
}

type Field = { readonly schema: z.ZodType; readonly mayBeAbsent: boolean }

/** Null: the schema does not know it. */
function fieldOf(form: z.core.$ZodObjectDef, name: string): Field | null {
  const schema = Object.hasOwn(form.shape, name) ? (form.shape[name] as z.ZodType) : null
  return schema && { schema, mayBeAbsent: takes(schema, undefined) && !takes(schema, null) }
}

const takes = (schema: z.ZodType, value: null | undefined): boolean => schema.safeParse(value).success

function withoutAbsent(value: Fields, fieldNamed: (name: string) => Field | null): Fields {
  const entries = Object.entries(value)
  const kept = entries.flatMap(([name, item]): [string, unknown][] => {
    const field = fieldNamed(name)
    if (field === null) return [[name, item]]
    return item === null && field.mayBeAbsent ? [] : [[name, nullAsAbsent(field.schema, item)]]
  })
  const isSame = kept.length === entries.length && kept.every(([, item], index) => item === entries[index]?.[1])
  return isSame ? value : Object.fromEntries(kept)
}

function eachOf(list: readonly unknown[], schema: z.ZodType): readonly unknown[] {
  const items = list.map((item) => nullAsAbsent(schema, item))
  return items.every((item, index) => item === list[index]) ? list : items
}

/** What stands behind "may be absent", "may be null" and a first look at the value. */
function formOf(schema: z.ZodType): z.core.$ZodTypes['_zod']['def'] {
  const { def } = (schema as unknown as z.core.$ZodTypes)._zod
  if ('innerType' in def) return formOf(def.innerType as z.ZodType)
  if (def.type !== 'pipe') return def
  return formOf((def.in._zod.def.type === 'transform' ? def.out : def.in) as z.ZodType)
}
