import { render } from 'preact'
import { Runner } from '../browser/runner.ts'
import { App } from './app.tsx'
import { repaint } from './palette.ts'
import { followScheme } from './scheme.ts'

const root = document.getElementById('app')
if (root !== null) {
  root.textContent = ''
  followScheme(repaint)
  // Relative to this module, so that the worker is found from any path.
  const runner = new Runner(() => new Worker(new URL('worker.js', import.meta.url), { type: 'module' }))
  render(<App runner={runner} />, root)
}
