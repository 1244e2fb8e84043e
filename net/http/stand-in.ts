/**
 * Owns how a light object stands in for one of the platform's: it is below the platform's prototype, so that `instanceof` says what a caller
 * expects, answers by itself what is asked all the time, and leaves everything else to a real one that is made when it is first asked for.
 * What looks into the real one's private parts (`new Request(light)`, `structuredClone`) is the one thing that does not work.
 */

/** The prototype of such objects. `members` are those that they answer themselves. */
export function standInFor(prototype: object, realOf: (light: never) => object, members: object): object {
  const own = Object.getOwnPropertyDescriptors(members)
  const left = Reflect.ownKeys(prototype).filter((name) => name !== 'constructor' && !Object.hasOwn(own, name))
  const pairs = left.map((name) => [name, leftTo(realOf, prototype, name)] as const)
  return Object.create(prototype, { ...Object.fromEntries(pairs), ...own }) as object
}

function leftTo(realOf: (light: never) => object, prototype: object, name: string | symbol): PropertyDescriptor {
  const member = Object.getOwnPropertyDescriptor(prototype, name) ?? {}
  if (typeof member.value === 'function') {
    const method = member.value as (...given: unknown[]) => unknown
    return {
      value(this: never, ...given: unknown[]) {
        return method.apply(realOf(this), given)
      },
    }
  }
  if (!member.get) return member
  return {
    get(this: never): unknown {
      return Reflect.get(realOf(this), name)
    },
  }
}
