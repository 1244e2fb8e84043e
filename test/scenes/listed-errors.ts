/** Owns which errors the OpenAPI document lists for an operation. */
import type { Operation } from './api-operations.ts'

type Listed = {
  readonly content?: Readonly<Record<string, { readonly schema: { readonly allOf?: readonly TypeOnly[] } }>>
}
type TypeOnly = { readonly properties?: { readonly type?: { readonly enum?: readonly string[] } } }

/** By status. */
export const listedErrors = ({
  described,
}: Pick<Operation, 'described'>): Readonly<Record<string, readonly string[]>> =>
  Object.fromEntries(
    Object.entries(described.responses).flatMap(([status, answer]) => {
      const [, only] = (answer as Listed).content?.['application/json']?.schema.allOf ?? []
      return only?.properties?.type?.enum ? [[status, only.properties.type.enum]] : []
    }),
  )

/** Null: the answer is no error, or the operation lists it. A path that is another operation's, or nobody's, is 404 or 405. */
export function unlistedError(
  operation: Operation,
  { status, json }: { readonly status: number; readonly json: unknown },
): string | null {
  const { type } = (json ?? {}) as { type?: string }
  if (status < 400 || status === 405 || type === undefined) return null
  return listedErrors(operation)[status]?.includes(type) ? null : `${operation.id} does not list ${status} ${type}`
}
