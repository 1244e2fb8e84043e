/**
 * Owns the form of what is told of fields: by the name of a field, or by the way to it (`Trunk.gateways.port`, `gateways.port`), of which the
 * longest that fits counts. `default` and `absent` say what counts where the field is not set.
 */

export type FieldWords =
  | string
  | { readonly is: string; readonly default: boolean | number | string }
  | { readonly is: string; readonly absent: string }

export type FieldTable = Readonly<Record<string, FieldWords>>
