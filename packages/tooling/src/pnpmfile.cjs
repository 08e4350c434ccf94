// A hook that pnpm calls before it packs a package. It derives parts of the published package.json from `exports`.

/**
 * The published `exports`, without paths to sources and without files that are not published.
 *
 * @param {Record<string, any>} exports
 * @param {readonly string[]} files
 * @returns {Record<string, any>}
 */
function publishedExports(exports, files) {
  const isPublished = (/** @type {string} */ target) => ['package.json', ...files].some((file) => `${target}/`.startsWith(`./${file}/`))
  return Object.fromEntries(
    Object.entries(exports)
      .filter(([, target]) => typeof target !== 'string' || isPublished(target))
      .map(([path, target]) => {
        if (typeof target === 'string') return [path, target]
        const { '@weir/source': _, ...published } = target
        return [path, published]
      }),
  )
}

/**
 * The types of subpaths for TypeScript with `moduleResolution: "node10"`, which doesn't read `exports`.
 *
 * @param {Record<string, any>} exports
 * @returns {{ '*': Record<string, string[]> } | undefined}
 */
function typesVersionsOf(exports) {
  const subpaths = Object.entries(exports).filter(([path, target]) => path !== '.' && target.require?.types !== undefined)
  if (subpaths.length === 0) return undefined
  return { '*': Object.fromEntries(subpaths.map(([path, target]) => [path.slice(2), [target.require.types]])) }
}

module.exports = {
  hooks: {
    /** @param {Record<string, any>} manifest */
    beforePacking(manifest) {
      if (manifest['exports'] === undefined) return manifest
      const exports = publishedExports(manifest['exports'], manifest['files'] ?? [])
      const typesVersions = typesVersionsOf(exports)
      return { ...manifest, exports, ...(typesVersions && { typesVersions }) }
    },
  },
}
