/** Owns `npm run bench <name>`: which benches there are. They measure; nothing in them passes or fails. */
import process from 'node:process'
import { benchWeb } from './web-bench.ts'

const benches: Readonly<Record<string, (given: readonly string[]) => Promise<void>>> = { web: benchWeb }

const [name = '', ...given] = process.argv.slice(2)
const bench = benches[name]
if (bench) await bench(given)
else console.log(`usage: npm run bench <${Object.keys(benches).join(' | ')}> [number of calls …]`)
process.exitCode = bench ? 0 : 2
