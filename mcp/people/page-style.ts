/** Owns how the pages for people look: in the colours of all pages, from a telephone to a wide screen, with large type and a focus that is seen. */
import { readFileSync } from 'node:fs'

const colours = readFileSync(new URL('../../look/colours.css', import.meta.url), 'utf8')

export const style = `
${colours}*{box-sizing:border-box}
body{margin:0;background:var(--ground);color:var(--ink);font:1rem/1.5 system-ui,sans-serif}
main{max-width:34rem;margin:6vh auto;padding:2rem;background:var(--card);border-radius:.75rem;box-shadow:0 1px 4px var(--line);overflow-wrap:anywhere}
@media (max-width:36rem){main{margin:0;min-height:100vh;border-radius:0;padding:1.25rem}}
.brand{margin:0;color:var(--soft);font-weight:600;letter-spacing:.02em}
h1{margin:.25rem 0 1.25rem;font-size:1.6rem;line-height:1.25}
h2{margin:2rem 0 .5rem;font-size:1.15rem}
a{color:var(--accent)}
.field{margin:0 0 1.1rem}
label{display:block;font-weight:600}
.hint,.soft{margin:.1rem 0 .3rem;color:var(--soft);font-size:.92rem}
input:not([type=hidden],[type=checkbox],[type=radio]),select{width:100%;padding:.6rem .7rem;font:inherit;color:inherit;background:var(--ground);border:1px solid var(--edge);border-radius:.4rem}
input[aria-invalid=true]{border-color:var(--bad);border-width:2px}
.error{margin:.3rem 0 0;color:var(--bad);font-weight:600}
.notice{margin:0 0 1.25rem;padding:.7rem .9rem;border:1px solid currentColor;border-left-width:.35rem;border-radius:.4rem}
.notice.error{margin:0 0 1.25rem;color:var(--bad)}
.notice.success{color:var(--good)}
button{padding:.65rem 1.2rem;font:inherit;font-weight:600;color:var(--on-accent);background:var(--accent);border:1px solid transparent;border-radius:.4rem;cursor:pointer}
button.quiet{color:var(--ink);background:transparent;border-color:var(--edge)}
button.bad{color:var(--card);background:var(--bad)}
.actions{display:flex;flex-wrap:wrap;gap:.75rem;align-items:center;margin-top:1.5rem}
:focus-visible{outline:3px solid var(--accent);outline-offset:2px}
fieldset{margin:0 0 1.1rem;padding:.4rem 1rem;border:1px solid var(--edge);border-radius:.4rem}
legend{padding:0 .4rem;font-weight:600}
table{width:100%;border-collapse:collapse}
th,td{padding:.4rem .5rem .4rem 0;text-align:left;vertical-align:top;border-bottom:1px solid var(--line)}
dt{font-weight:600;margin-top:.75rem}
dd{margin:0}
ul{padding-left:1.2rem}
form+.soft{margin-top:1.5rem}
code{font-size:.95em}
`
