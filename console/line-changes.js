/** Owns what differs between two texts, line by line. Pure. */

/** @typedef {{ kind: 'same' | 'added' | 'removed', line: string }} LineChange */

/** Cells of the table that finds the longest common part; beyond, the middle of the texts is told as replaced. */
const mostCells = 4_000_000
/** Lines around a change that are told too. */
const around = 3

/**
 * @param {string} before
 * @param {string} now
 * @returns {LineChange[]} lines that are the same far from any change are left out
 */
export function lineChanges(before, now) {
  const [old, fresh] = [before.split('\n'), now.split('\n')]
  let start = 0
  while (start < old.length && start < fresh.length && old[start] === fresh[start]) start++
  let end = 0
  while (end < old.length - start && end < fresh.length - start && old.at(-1 - end) === fresh.at(-1 - end)) end++
  const middle = middleOf(old.slice(start, old.length - end), fresh.slice(start, fresh.length - end))
  const same = (/** @type {string} */ line) => /** @type {LineChange} */ ({ kind: 'same', line })
  return shortened([...old.slice(0, start).map(same), ...middle, ...old.slice(old.length - end).map(same)])
}

/** @param {readonly string[]} old @param {readonly string[]} fresh @returns {LineChange[]} */
function middleOf(old, fresh) {
  const replaced = () => [
    ...old.map((line) => /** @type {LineChange} */ ({ kind: 'removed', line })),
    ...fresh.map((line) => /** @type {LineChange} */ ({ kind: 'added', line })),
  ]
  if (old.length * fresh.length === 0 || old.length * fresh.length > mostCells) return replaced()
  const width = fresh.length + 1
  const lengths = new Uint32Array((old.length + 1) * width)
  const at = (/** @type {number} */ row, /** @type {number} */ column) => lengths[row * width + column] ?? 0
  for (let row = old.length - 1; row >= 0; row--)
    for (let column = fresh.length - 1; column >= 0; column--)
      lengths[row * width + column] =
        old[row] === fresh[column] ? at(row + 1, column + 1) + 1 : Math.max(at(row + 1, column), at(row, column + 1))
  /** @type {LineChange[]} */
  const changes = []
  let [row, column] = [0, 0]
  while (row < old.length || column < fresh.length) {
    const [gone, come] = [old[row], fresh[column]]
    if (gone !== undefined && gone === come) {
      changes.push({ kind: 'same', line: gone })
      row++
      column++
    } else if (gone !== undefined && (come === undefined || at(row + 1, column) >= at(row, column + 1))) {
      changes.push({ kind: 'removed', line: gone })
      row++
    } else {
      changes.push({ kind: 'added', line: come ?? '' })
      column++
    }
  }
  return changes
}

/** @param {readonly LineChange[]} changes */
function shortened(changes) {
  const near = new Set()
  changes.forEach(({ kind }, index) => {
    if (kind !== 'same') for (let place = index - around; place <= index + around; place++) near.add(place)
  })
  return near.size === 0 ? changes.slice(0, 2 * around) : changes.filter((_, index) => near.has(index))
}
