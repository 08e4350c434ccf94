import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import type { Packed } from '@weir/tooling/pack'
import { mustRun, pnpm } from '@weir/tooling/run'
import { transform } from 'esbuild'

/** A kind of project that an application may have. */
export interface Flavour {
  readonly name: string
  readonly module: 'esm' | 'cjs'
  readonly language: 'js' | 'ts'
  readonly installer: 'npm' | 'pnpm'
  /** The compiler of a TypeScript project. */
  readonly typescript?: string
}

export const flavours: readonly Flavour[] = [
  { name: 'ESM, JavaScript, npm', module: 'esm', language: 'js', installer: 'npm' },
  { name: 'CommonJS, JavaScript, pnpm', module: 'cjs', language: 'js', installer: 'pnpm' },
  { name: 'ESM, TypeScript 7, pnpm', module: 'esm', language: 'ts', installer: 'pnpm', typescript: '^7.0.2' },
  { name: 'CommonJS, TypeScript 5, pnpm', module: 'cjs', language: 'ts', installer: 'pnpm', typescript: '^5.9.0' },
]

/** The output of `packages/<name>/test/packed/throttle.ts` for a limit of 2 and three requests. */
export const THROTTLED = 'allowed allowed rejected'
/** The output of the program that replaces a missing one. */
export const IMPORTED = 'imported'

/** The package's own program for this test, or a minimal import. TypeScript, an ES module without top-level await. */
export function snippetOf({ directory, manifest }: Packed): { code: string; prints: string } {
  const file = join(directory, 'test', 'packed', 'throttle.ts')
  if (existsSync(file)) return { code: readFileSync(file, 'utf8'), prints: THROTTLED }
  const code = `import * as all from '${manifest.name}'\nif (Object.keys(all).length === 0) throw new Error('no exports')\nconsole.log('${IMPORTED}')\n`
  return { code, prints: IMPORTED }
}

/** The `@types` packages in the README's install commands. The project gets no others, so that a missing one fails to compile. */
function typesFor({ directory }: Packed): readonly string[] {
  const readme = readFileSync(join(directory, 'README.md'), 'utf8')
  const lines = [...readme.matchAll(/^npm install .*$/gm)].join(' ')
  return lines.match(/@types\/[\w-]+/g) ?? []
}

const stem = ({ directory }: Packed): string => basename(directory)

/** Writes an empty project that depends on the tarballs and their peer dependencies. */
export async function writeProject(directory: string, flavour: Flavour, packed: readonly Packed[]): Promise<void> {
  const dependencies: Record<string, string> = {}
  const devDependencies: Record<string, string> = {}
  for (const one of packed) {
    const { manifest, tarball } = one
    dependencies[manifest.name] = `file:${tarball}`
    Object.assign(dependencies, manifest.peerDependencies)
    if (flavour.language === 'ts') for (const types of typesFor(one)) devDependencies[types] = '*'
  }
  if (flavour.typescript !== undefined) Object.assign(devDependencies, { typescript: flavour.typescript, '@types/node': '^20' })

  mkdirSync(join(directory, 'src'), { recursive: true })
  const type = flavour.module === 'esm' ? 'module' : 'commonjs'
  writeFileSync(
    join(directory, 'package.json'),
    JSON.stringify({ name: 'application', private: true, type, dependencies, devDependencies }),
  )
  if (flavour.installer === 'pnpm') {
    // The packages depend on each other by version, but these versions are not published.
    const overrides = packed.map(({ manifest, tarball }) => `  '${manifest.name}': 'file:${tarball}'\n`).join('')
    writeFileSync(join(directory, 'pnpm-workspace.yaml'), `packages: []\noverrides:\n${overrides}`)
  }
  if (flavour.language === 'ts') {
    const compilerOptions = {
      module: 'nodenext',
      target: 'es2022',
      lib: ['es2022'],
      types: ['node'],
      strict: true,
      exactOptionalPropertyTypes: true,
      skipLibCheck: false,
      rootDir: 'src',
      outDir: 'out',
    }
    writeFileSync(join(directory, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['src'] }))
  }
  for (const one of packed) {
    const { code } = snippetOf(one)
    if (flavour.language === 'ts') writeFileSync(join(directory, 'src', `${stem(one)}.ts`), code)
    else {
      const plain = await transform(code, { loader: 'ts', format: flavour.module, platform: 'node', target: 'node20' })
      writeFileSync(join(directory, 'src', `${stem(one)}.js`), plain.code)
    }
  }
}

export async function install(directory: string, flavour: Flavour): Promise<void> {
  const env = { ...process.env, NODE_ENV: 'development', CI: 'true' }
  if (flavour.installer === 'npm') {
    await mustRun('npm', ['install', '--prefer-offline', '--no-audit', '--no-fund', '--no-package-lock'], { cwd: directory, env })
  } else {
    await pnpm(['install', '--prefer-offline', '--no-frozen-lockfile'], { cwd: directory, env })
  }
}

export async function compile(directory: string): Promise<void> {
  await mustRun(join(directory, 'node_modules', '.bin', 'tsc'), ['-p', '.'], { cwd: directory })
}

/** Runs the program of one package in its project and returns its output. `servers` are addresses by the names of environment variables. */
export async function runProgram(
  directory: string,
  flavour: Flavour,
  one: Packed,
  servers: Readonly<Record<string, string>>,
): Promise<string> {
  const folder = flavour.language === 'ts' ? 'out' : 'src'
  const env = { PATH: process.env['PATH'], ...servers }
  return (await mustRun(process.execPath, [join(folder, `${stem(one)}.js`)], { cwd: directory, env })).trim()
}

/** A program that prints errors of several entries, and the lines of the two throttlers whose rules differ, which the first error names. */
export function entriesProgram(module: Flavour['module']): string {
  const imports = [
    ['* as core', '@weir/core'],
    ['{ throttle }', '@weir/express'],
    ['{ fileRules }', '@weir/core/rules'],
    ['{ redisStore }', '@weir/redis'],
  ].map(([names = '', from]) =>
    module === 'esm' ? `import ${names} from '${from}'` : `const ${names.replace('* as ', '')} = require('${from}')`,
  )
  const code = [
    "const policy = { name: 'api', limit: 1, interval: '1m', key: 'ip' }",
    'const store = core.memoryStore()',
    'const errors = []',
    'const attempt = (call) => { try { call() } catch (error) { errors.push(error) } }',
    // Reachable until the end, because a collected throttler frees its names for others.
    'globalThis.first = core.createThrottler({ policies: [policy], store })',
    'attempt(() => throttle({ ...policy, limit: 2, store }))',
    'attempt(() => fileRules(1))',
    'attempt(() => redisStore(1))',
    // The last error is thrown in a function that only Node.js calls.
    "process.once('uncaughtException', (error) => {",
    '  errors.push(error)',
    '  const told = errors.map((error) => ({ code: error.code, ours: error instanceof core.WeirError, message: error.message, stack: error.stack }))',
    '  console.log(JSON.stringify({ lines: [9, 10], errors: told }))',
    '})',
    'setImmediate(throttle, { ...policy, limit: 2, store })',
  ]
  return `${[...imports, ...code].join('\n')}\n`
}
