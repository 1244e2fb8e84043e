/**
 * Owns what is said to who starts the service before `npm ci`, or with a node that is too old: in JavaScript that an old node reads as well. All else
 * is start.ts.
 */
import process from 'node:process'

const wanted = 24

/** @param {string} sentence */
function refuse(sentence) {
  process.stderr.write(`${sentence}\n`)
  process.exitCode = 1
}

// Of what the program is written with this came last.
if (typeof AsyncDisposableStack === 'undefined')
  refuse(
    `Parley needs node ${wanted}, and this is node ${process.versions.node}: run npm ci, which brings the right one along, and then npm start.`,
  )
else
  import('./start.ts').catch((error) => {
    if (error.code !== 'ERR_MODULE_NOT_FOUND' || !error.message.startsWith('Cannot find package')) throw error
    const [, name] = /'([^']+)'/.exec(error.message) ?? []
    refuse(`The package ${name} is not there: run npm ci, and then npm start.`)
  })
