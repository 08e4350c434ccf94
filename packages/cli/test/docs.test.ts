import { readFileSync } from 'node:fs'
import type { Command } from 'commander'
import { describe, expect, it } from 'vitest'
import { programOf } from '../src/program.ts'
import { Output } from '../src/terminal/output.ts'

const page = readFileSync(new URL('../../../docs/reference/command-line.md', import.meta.url), 'utf8')
const { stdin, stdout, stderr } = process
const program = programOf(new Output({ stdin, stdout, stderr, env: {} }), '1.2.3', () => {})

/** The part of the page from a heading to the next one of its level. */
function section(title: string): string {
  return page.split(/^## /m).find((part) => part.startsWith(title)) ?? ''
}

describe.each(program.commands.map((command): [string, Command] => [command.name(), command]))('the page on weir %s', (name, command) => {
  // Options that several commands share have their own section.
  const has = (option: string) => command.options.some(({ long }) => long === option)
  const common = has('--source') ? section('Sources\n') : has('--store') ? section('Stores\n') : ''
  const text = section(`${name[0]?.toUpperCase()}${name.slice(1)}\n`) + common

  it('shows how it is called', () => {
    const args = command.registeredArguments.map((argument) => {
      const one = argument.variadic ? `${argument.name()}...` : argument.name()
      return argument.required ? `<${one}>` : `[${one}]`
    })
    expect(text).toContain(['`weir', name, ...args].join(' '))
  })

  it.each(
    command.options.map(({ flags, defaultValue, defaultValueDescription }) => ({ flags, usual: defaultValueDescription ?? defaultValue })),
  )('lists $flags', ({ flags, usual }) => {
    const row = text.split('\n').find((line) => line.startsWith(`| \`${flags}\` |`))
    expect(row).toBeDefined()
    if (usual !== undefined) expect(row).toContain(`| \`${usual}\` |`)
  })
})

it('lists the options of the program, and no command that is not there', () => {
  for (const { flags } of program.options) expect(page).toContain(`\`${flags}\``)
  const named = [...page.matchAll(/`weir (\w+)/g)].map(([, name]) => name).filter((name) => name !== 'help')
  expect(program.commands.map((command) => command.name())).toEqual(expect.arrayContaining(named))
})
