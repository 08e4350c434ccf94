import { render } from 'preact'
import { App } from './app.tsx'

const root = document.getElementById('app')
// What a browser has kept of the page may be of a session that is over.
addEventListener('pageshow', ({ persisted }) => {
  if (persisted) location.reload()
})
if (root !== null) {
  root.textContent = ''
  render(<App />, root)
}
