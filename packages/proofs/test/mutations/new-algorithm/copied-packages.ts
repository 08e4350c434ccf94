import { spawn } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { mutate } from '../mutant.ts'

const PACKAGES = fileURLToPath(new URL('../../../../', import.meta.url))
const COPIED = ['core', 'testing', 'cli']
const LEFT_OUT = ['node_modules', 'dist', 'docs']

export interface Ended {
  readonly code: number | null
  readonly output: string
}

/** Copies of the packages that list the built-in algorithms. Each depends on the copies of the others. */
export class CopiedPackages {
  readonly directory: string = mkdtempSync(join(tmpdir(), 'weir-new-algorithm-'))

  constructor() {
    cpSync(join(PACKAGES, '../tsconfig.base.json'), join(this.directory, 'tsconfig.base.json'))
    for (const name of COPIED) {
      const from = join(PACKAGES, name)
      const to = this.path(name)
      cpSync(from, to, { recursive: true, filter: (file) => !LEFT_OUT.includes(basename(file)) })
      this.#link(join(from, 'node_modules'), join(to, 'node_modules'))
    }
    // The configuration finds the types of Node.js here.
    symlinkSync(join(PACKAGES, '../node_modules'), join(this.directory, 'node_modules'))
  }

  /** A file of a package, such as `core/src/index.ts`. */
  path(file: string): string {
    return join(this.directory, 'packages', file)
  }

  write(file: string, text: string): void {
    mkdirSync(join(this.path(file), '..'), { recursive: true })
    writeFileSync(this.path(file), text)
  }

  /** @throws if the place is not found exactly once */
  edit(edit: { readonly file: string; readonly find: string; readonly replace: string }): void {
    this.write(edit.file, mutate(readFileSync(this.path(edit.file), 'utf8'), edit))
  }

  /** Runs a TypeScript program with the sources of the copies. */
  node(file: string, ...args: readonly string[]): Promise<Ended> {
    return this.#run('core', ['--conditions=@weir/source', '--import', import.meta.resolve('tsx'), this.path(file), ...args])
  }

  /** Runs a program of a dependency in the folder of a package. */
  bin(directory: string, name: string, ...args: readonly string[]): Promise<Ended> {
    return this.#run(directory, [join(PACKAGES, 'proofs/node_modules', name), ...args])
  }

  remove(): void {
    rmSync(this.directory, { recursive: true, force: true })
  }

  #link(from: string, to: string): void {
    mkdirSync(to, { recursive: true })
    for (const entry of readdirSync(from)) {
      if (entry === '@weir') this.#link(join(from, entry), join(to, entry))
      else if (COPIED.includes(entry) && basename(from) === '@weir') symlinkSync(this.path(entry), join(to, entry))
      else symlinkSync(join(from, entry), join(to, entry))
    }
  }

  #run(directory: string, args: readonly string[]): Promise<Ended> {
    return new Promise((resolve, reject) => {
      const child = spawn(process.execPath, args, {
        cwd: this.path(directory),
        env: { ...process.env, NODE_NO_WARNINGS: '1', NO_COLOR: '1' },
      })
      let output = ''
      for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += String(chunk)))
      child.on('error', reject)
      child.on('close', (code) => resolve({ code, output }))
    })
  }
}
