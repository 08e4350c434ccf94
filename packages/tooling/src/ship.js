import { readFileSync } from 'node:fs'
import { join, relative, resolve } from 'node:path'
import { rolldown } from 'rolldown'
import { parseAst } from 'rolldown/parseAst'
import { shortScripts } from './shorten-scripts.js'

/** @typedef {{ get(id: string): { importedIds: string[], dynamicallyImportedIds: string[] } | null, ids: readonly string[] }} Graph */

/** Modules that load a peer. If the peer is missing, Node.js prints the path of the module, so it stays a file of that name. */
const INSTALL = /[\\/](npm-install-[\w-]+)\.ts$/
const LIBRARY = /^.*[\\/]node_modules[\\/]((?:@[^\\/]+[\\/])?[^\\/]+)/

/**
 * Bundles the package in the current directory to `esm` and `cjs` of a folder. It makes a file for each entry and only a few that entries
 * share or load later, because Node.js needs longer to find and open a file than to compile it. The files include libraries from
 * devDependencies.
 *
 * @param {string} [out] the folder
 * @returns {Promise<void>}
 */
export async function bundlePackage(out = 'dist') {
  /** @type {import('./workspace.js').Manifest & { bin?: Record<string, string> }} */
  const manifest = JSON.parse(readFileSync('package.json', 'utf8'))
  const entries = entriesOf(manifest)
  const apart = [...Object.keys(manifest.dependencies ?? {}), ...Object.keys(manifest.peerDependencies ?? {})]
  const scripts = await shortScripts('src/scripts')
  for (const format of /** @type {const} */ (['esm', 'cjs'])) {
    const input = format === 'esm' ? { ...entries, ...programsOf(manifest) } : entries
    /** @type {((id: string) => string | undefined) | undefined} */
    let chunkOf
    const bundle = await rolldown({
      input,
      platform: 'node',
      tsconfig: 'tsconfig.esm.json',
      external: (id) => apart.some((name) => id === name || id.startsWith(`${name}/`)),
      plugins: [
        {
          name: 'weir',
          load: (id) => scripts.get(relative('.', id)),
          transform(code, id) {
            if (INSTALL.test(id)) return { code: bound(code), map: null }
            if (LIBRARY.test(id)) return /^exports\./m.test(code) ? { code: asModule(code, id), map: null } : undefined
            return { code: withoutEffects(code), map: null }
          },
          buildEnd() {
            chunkOf = chunks({ get: (id) => this.getModuleInfo(id), ids: [...this.getModuleIds()] }, input)
          },
        },
      ],
      // A dynamic import of a part that an entry also imports is no mistake. The part is already loaded then.
      checks: { ineffectiveDynamicImport: false },
    })
    await bundle.write({
      dir: join(out, format),
      format,
      exports: 'named',
      entryFileNames: '[name].js',
      chunkFileNames: '[name].js',
      dynamicImportInCjs: false,
      esModule: true,
      strict: true,
      // Line breaks and the names of functions and classes stay, for stack traces without source maps. Bundlers need the annotations. ES
      // modules that import CommonJS need its `enumerable: true`, by which Node.js finds names.
      minify: { compress: format === 'esm', mangle: { toplevel: false, keepNames: true }, codegen: false },
      comments: { annotation: true, legal: true, jsdoc: false },
      banner: ({ moduleIds }) => licences(moduleIds),
      sourcemap: true,
      // The package contains `src`.
      sourcemapExcludeSources: true,
      sourcemapPathTransform: (path) => path.replace(LIBRARY, 'node_modules/$1'),
      codeSplitting: {
        groups: [
          { name: (id) => INSTALL.exec(id)?.[1], debugName: 'peers', priority: 3 },
          { name: SHARED, test: (/** @type {string} */ id) => chunkOf?.(id) === SHARED, priority: 2 },
          { name: (id) => chunkOf?.(id), debugName: 'later', priority: 1 },
        ],
      },
    })
    await bundle.close()
  }
}

/**
 * Changes a module that re-exports a peer's values so that it has its own variables for them. Otherwise the bundler would import the peer
 * everywhere.
 *
 * @param {string} code
 */
function bound(code) {
  return code.replace(/^export \{(.*)\} from (.*)$/m, (_, /** @type {string} */ list, peer) => {
    const names = list.split(',').map((one) => one.trim().split(' as '))
    const values = names.map(([name, as = name]) => /** @type {const} */ ([`${name} as $${as}`, `${as} = $${as}`]))
    return `import { ${values.map(([from]) => from)} } from ${peer}\nexport const ${values.map(([, to]) => to)}`
  })
}

/**
 * Changes a library that TypeScript has compiled to CommonJS into an ES module, so that bundlers leave out its unused exports.
 *
 * @param {string} code
 * @param {string} id
 */
function asModule(code, id) {
  const module = code
    .replace(/^Object\.defineProperty\(exports, "__esModule".*$/m, '')
    .replace(/^exports\..* = void 0;$/m, '')
    .replace(/^exports\.(\w+) = \1;$/gm, 'export { $1 }')
  if (/\b(exports|require)\b/.test(module))
    throw new Error(`${id} is CommonJS of a form that can't be put into a bundle. List it in "dependencies".`)
  return module
}

/**
 * Marks the calls that make the variables of a module as free of effects. `sideEffects` in the manifest does this only for whole files:
 * bundlers leave out an unused module, but from a file with many modules they leave out only statements without effects.
 *
 * @param {string} code TypeScript
 */
function withoutEffects(code) {
  /** @type {number[]} */
  const calls = []
  for (const { declaration, ...statement } of /** @type {any[]} */ (parseAst(code, { lang: 'ts' }).body))
    for (const { init } of (declaration ?? statement).declarations ?? []) addCalls(init, calls)
  return calls.sort((a, b) => b - a).reduce((text, at) => `${text.slice(0, at)}/* @__PURE__ */ ${text.slice(at)}`, code)
}

/**
 * @param {any} node
 * @param {number[]} calls
 */
function addCalls(node, calls) {
  if (typeof node !== 'object' || node === null || /Function|Class/.test(node.type)) return
  if (node.type === 'CallExpression' || node.type === 'NewExpression') calls.push(node.start)
  for (const part of Object.values(node)) addCalls(part, calls)
}

/** The chunk of code that several entries use, or an entry and a part that is loaded later. */
const SHARED = 'shared'
/** The end of the name of a chunk that is loaded when first needed. */
const LATER = '-later'

/**
 * Decides which chunk a module belongs to. Modules of one entry belong to none, and stay in the entry's file. Code that is loaded later
 * belongs to the smallest entry that loads it, because a bundle in one file contains each chunk that it loads later as a whole.
 *
 * @param {Graph} graph
 * @param {Readonly<Record<string, string>>} inputs the files of the entries by their names
 * @returns {(id: string) => string | undefined}
 */
function chunks({ get, ids }, inputs) {
  /** @param {string} start */
  const reach = (start, later = false) => {
    const seen = new Set([start])
    for (const id of seen) for (const next of nextOf(id, later)) seen.add(next)
    return seen
  }
  /**
   * @param {string} id
   * @param {boolean} later whether parts that it loads later count, too
   */
  const nextOf = (id, later) => {
    const { importedIds = [], dynamicallyImportedIds = [] } = get(id) ?? {}
    return later ? [...importedIds, ...dynamicallyImportedIds] : importedIds
  }
  const bySize = Object.entries(inputs)
    .map(([name, file]) => ({ name, first: reach(resolve(file)), whole: reach(resolve(file), true) }))
    .sort((a, b) => a.whole.size - b.whole.size)
  /** @param {string} id */
  const laterOf = (id) => {
    const smallest = bySize.find(({ first, whole }) => whole.has(id) && !first.has(id))
    return smallest === undefined ? SHARED : `${smallest.name}${LATER}`
  }
  const entries = new Set(Object.values(inputs).map((file) => resolve(file)))
  const fromEntries = [...entries].map((id) => reach(id))
  const parts = new Set(ids.flatMap((id) => get(id)?.dynamicallyImportedIds ?? []))
  const fromParts = [...parts].map((id) => reach(id))
  // Parts that an entry also imports.
  const fromBoth = [...parts].filter((id) => fromEntries.some((reached) => reached.has(id))).map((id) => reach(id))
  return (id) => {
    if (entries.has(id)) return undefined
    const users = fromEntries.filter((reached) => reached.has(id)).length
    if (users === 0) return laterOf(id)
    const all = users + fromParts.filter((reached) => reached.has(id)).length
    if (all === 1) return undefined
    return users === 1 && fromBoth.some((reached) => reached.has(id)) ? laterOf(id) : SHARED
  }
}

/**
 * Sources of the entries, by the file that they become.
 *
 * @param {import('./workspace.js').Manifest} manifest
 */
function entriesOf({ exports = {} }) {
  const files = Object.values(/** @type {Record<string, Record<string, any>>} */ (exports)).filter(
    (one) => one['@weir/source'] !== undefined,
  )
  return Object.fromEntries(files.map((one) => [nameOf(one['import'].default), one['@weir/source']]))
}

/** @param {{ bin?: Record<string, string> }} manifest */
function programsOf({ bin = {} }) {
  return Object.fromEntries(Object.values(bin).map((file) => [nameOf(file), `./src/${nameOf(file)}.ts`]))
}

/** @param {string} file */
function nameOf(file) {
  return file.replace(/^\.\/dist\/esm\/(.*)\.js$/, '$1')
}

/**
 * The licences of the libraries in a file.
 *
 * @param {readonly string[]} ids
 */
function licences(ids) {
  const folders = new Set(ids.flatMap((id) => LIBRARY.exec(id)?.[0] ?? []))
  return [...folders].map((folder) => `/*!\n${readFileSync(join(folder, 'LICENSE'), 'utf8').trim()}\n*/`).join('\n')
}
