import { withBase } from 'vitepress'
import { defineComponent, h, onMounted, ref } from 'vue'
import './not-found.css'

/** Where VitePress's search keeps its words. */
const WORDS = 'vitepress:local-search-filter'
/** The most characters of an address that are searched for. */
const MOST = 60

/** The last part of a path as words: `/guides/rate-limits.html` gives `rate limits`. */
function wordsOf(path: string): string {
  const name = path.slice(path.lastIndexOf('/') + 1).slice(0, MOST)
  return name
    .replace(/\.\w+$/, '')
    .replace(/%[\da-f]{2}|[^a-z\d]+/gi, ' ')
    .trim()
}

/** The page for unknown addresses. It offers a search for the words of the address. */
export const NotFound = defineComponent(() => {
  const words = ref('')
  onMounted(() => {
    words.value = wordsOf(location.pathname)
  })
  const search = (event: Event): void => {
    event.preventDefault()
    sessionStorage.setItem(WORDS, words.value)
    // The shortcut that opens the search.
    dispatchEvent(new KeyboardEvent('keydown', { key: 'k', ctrlKey: true }))
  }
  return () =>
    h('div', { class: 'weir-not-found' }, [
      h('h1', 'Page not found'),
      h('p', 'The address has no page. Search the documentation, or go to the home page.'),
      h('form', { role: 'search', onSubmit: search }, [
        h('input', {
          type: 'search',
          'aria-label': 'Search the documentation',
          maxlength: MOST,
          value: words.value,
          onInput: ({ target }: Event) => {
            words.value = (target as HTMLInputElement).value
          },
        }),
        h('button', { type: 'submit' }, 'Search'),
      ]),
      h('a', { href: withBase('/') }, 'Home page'),
    ])
})
