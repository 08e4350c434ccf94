import { posix } from 'node:path'

/**
 * Makes a page for each code that the page of all errors explains, so that a search for one code finds only its page. The pages are in a
 * folder `errors/` beside `reference/`, in the package of the core and on the site.
 *
 * @param {string} text of reference/errors.md
 * @returns {{ path: string, text: string }[]}
 */
export function errorPages(text) {
  return [...text.matchAll(/^### (WEIR_\w+)\n([\s\S]*?)(?=^##|(?![\s\S]))/gm)].map(([, code = '', section = '']) => {
    const name = code.toLowerCase()
    const all = `[All errors and warnings](../reference/errors.md#${name})`
    return { path: `errors/${name}.md`, text: `# ${code}\n\n${relinked(section.trim())}\n\n${all}\n` }
  })
}

/** @param {string} section */
function relinked(section) {
  return section.replace(/\]\((?![a-z]+:)([^)\s]+)\)/g, (_, /** @type {string} */ url) => {
    const code = /^#(weir_\w+)$/.exec(url)?.[1]
    if (code !== undefined) return `](${code}.md)`
    return `](${url.startsWith('#') ? `../reference/errors.md${url}` : posix.join('../reference', url)})`
  })
}
