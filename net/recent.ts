/** Owns a memory of bounded size: what was used lately stays, what was not is forgotten, at a cost that does not grow. */

export type Recent<Value> = {
  /** What is got stays. */
  get(key: string): Value | undefined
  set(key: string, value: Value): void
  delete(key: string): void
}

/** Holds between `size / 2` and `size` of the latest: two generations, of which the older is dropped when the younger is full. */
export function createRecent<Value>(size: number): Recent<Value> {
  let young = new Map<string, Value>()
  let old = new Map<string, Value>()
  const set = (key: string, value: Value): void => {
    if (young.size >= size / 2) {
      old = young
      young = new Map()
    }
    young.set(key, value)
  }
  return {
    get(key) {
      const value = young.get(key)
      if (value !== undefined) return value
      const former = old.get(key)
      if (former !== undefined) set(key, former)
      return former
    },
    set,
    delete(key) {
      young.delete(key)
      old.delete(key)
    },
  }
}
