/** Owns which apps want new requests of which verb: one after the other in turn. */
export type Routes<Owner> = {
  add(verb: string, owner: Owner): void
  remove(verb: string, owner: Owner): void
  /** Of all verbs. */
  leave(owner: Owner): void
  /** The app whose turn it is. Null: no app wants the method. */
  next(verb: string): Owner | null
  /** In upper case, as Allow lists them. */
  methods(): string[]
}

export function createRoutes<Owner>(): Routes<Owner> {
  const owners = new Map<string, Owner[]>()

  function remove(verb: string, owner: Owner): void {
    const left = (owners.get(verb) ?? []).filter((one) => one !== owner)
    if (left.length > 0) owners.set(verb, left)
    else owners.delete(verb)
  }

  return {
    add(verb, owner) {
      const present = owners.get(verb) ?? []
      if (!present.includes(owner)) owners.set(verb, [...present, owner])
    },
    remove,
    leave: (owner) => [...owners.keys()].forEach((verb) => remove(verb, owner)),
    next(verb) {
      const [first, ...others] = owners.get(verb.toLowerCase()) ?? []
      if (first === undefined) return null
      owners.set(verb.toLowerCase(), [...others, first])
      return first
    },
    methods: () => [...owners.keys()].filter((verb) => !verb.includes(':')).map((verb) => verb.toUpperCase()),
  }
}
