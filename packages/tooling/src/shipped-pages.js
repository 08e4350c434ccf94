import { posix } from 'node:path'

/** Folders with pages that somebody needs who has installed a package. Measurements, migration and quick starts are read before. */
const SHIPPED = /^(?:guides|reference|recipes|errors)\//

/** @typedef {{ readonly path: string, readonly text: string }} Page */

/**
 * Chooses the pages that a package contains. Links to other pages and to images become plain text, because they would lead nowhere.
 *
 * @param {readonly Page[]} pages with paths relative to `docs/`
 * @returns {Page[]}
 */
export function shippedPages(pages) {
  const shipped = pages.filter(({ path }) => SHIPPED.test(path))
  const paths = new Set(shipped.map(({ path }) => path))
  return shipped.map(({ path, text }) => ({
    path,
    text: text.replace(/!?\[((?:[^[\]]|\[[^[\]]*\])*)\]\((?![a-z]+:|#)([^)\s]+)\)/g, (link, /** @type {string} */ words, url) => {
      const file = posix.join(posix.dirname(path), url.replace(/#.*/, ''))
      return paths.has(file) && !link.startsWith('!') ? link : words
    }),
  }))
}
