import { render } from 'preact'
import { App } from './app.tsx'

const root = document.getElementById('app')
// The browser may restore a page from its cache although the session has ended.
addEventListener('pageshow', ({ persisted }) => {
  if (persisted) location.reload()
})
if (root !== null) {
  root.textContent = ''
  render(<App />, root)
}
