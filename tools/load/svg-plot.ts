/** Owns one plot as inline SVG: lines over time, with a scale and a legend; colours come from the page's own style. */
import { escaped } from '../escaped.ts'

export type PlotLine = {
  readonly name: string
  /** Of its colour, 1 to 5. */
  readonly tone: number
  /** Null: nothing was measured then. */
  readonly points: readonly { readonly at: number; readonly value: number | null }[]
}

const width = 640
const height = 180
const left = 56
const right = 12
const top = 10
const bottom = 24
const marks = 4

export function plotOf(title: string, unit: string, lines: readonly PlotLine[]): string {
  const all = lines.flatMap(({ points }) => points)
  const values = all.flatMap(({ value }) => (value === null ? [] : [value]))
  if (values.length === 0) return ''
  const [from, to] = [Math.min(...all.map(({ at }) => at)), Math.max(...all.map(({ at }) => at))]
  const most = niceAbove(Math.max(...values))
  const x = (at: number): number => left + ((width - left - right) * (at - from)) / Math.max(1, to - from)
  const y = (value: number): number => top + (height - top - bottom) * (1 - value / most)
  const drawn = lines.map(({ tone, points }) => drawnLine(points, tone, x, y))
  const scale = Array.from({ length: marks + 1 }, (_, index) => markOf((most * index) / marks, y))
  const legend = lines
    .map(({ name, tone }) => `<span class="key"><i class="swatch tone${tone}"></i>${escaped(name)}</span>`)
    .join('')
  const label = `${title}${unit && ` (${unit})`}`
  return (
    `<figure><figcaption>${escaped(label)} ${legend}</figcaption>` +
    `<svg viewBox="0 0 ${width} ${height}" role="img" aria-label="${escaped(label)}">${scale.join('')}${drawn.join('')}` +
    `<text class="mark" x="${left}" y="${height - 6}">${seconds(from)}</text>` +
    `<text class="mark end" x="${width - right}" y="${height - 6}">${seconds(to)}</text></svg></figure>`
  )
}

type Place = (value: number) => number

/** A gap where nothing was measured. A point alone is a dot. */
function drawnLine(points: PlotLine['points'], tone: number, x: Place, y: Place): string {
  const parts: string[][] = [[]]
  for (const { at, value } of points) {
    if (value === null) parts.push([])
    else parts.at(-1)?.push(`${x(at).toFixed(1)},${y(value).toFixed(1)}`)
  }
  return parts
    .filter((part) => part.length > 0)
    .map((part) => {
      const [cx = '0', cy = '0'] = (part[0] ?? '').split(',')
      if (part.length === 1) return `<circle class="tone${tone} dot" cx="${cx}" cy="${cy}" r="2"/>`
      return `<polyline class="tone${tone}" points="${part.join(' ')}"/>`
    })
    .join('')
}

const markOf = (value: number, y: Place): string =>
  `<line class="grid" x1="${left}" x2="${width - right}" y1="${y(value).toFixed(1)}" y2="${y(value).toFixed(1)}"/>` +
  `<text class="mark end" x="${left - 6}" y="${(y(value) + 4).toFixed(1)}">${brief(value)}</text>`

const seconds = (ms: number): string => `${(ms / 1000).toFixed(0)} s`

const brief = (value: number): string =>
  value >= 100 || Number.isInteger(value) ? value.toFixed(0) : value.toPrecision(2)

/** 1, 2, 2.5, 5 or 10 times a power of ten. */
export function niceAbove(value: number): number {
  if (!(value > 0)) return 1
  const power = 10 ** Math.floor(Math.log10(value))
  const step = [1, 2, 2.5, 5, 10].find((factor) => factor * power >= value) ?? 10
  return step * power
}
