/** Charts or tables of the documentation that this package generates. */
export interface Figure {
  /** The name by which `pnpm charts` selects it. */
  readonly name: string
  /** File names of its charts, and names of its tables. */
  readonly makes: readonly string[]
  /** One line for the terminal, which also mentions a long run time. */
  readonly about: string
  make(): Promise<Made>
}

export interface Made {
  /** File name in `docs/images` → SVG, or the bytes of a picture. */
  readonly charts?: Readonly<Record<string, string | Uint8Array>>
  /** Name of a marker in the documentation → rows of a table with the head first, or Markdown that is written unchanged. */
  readonly tables?: Readonly<Record<string, string | readonly (readonly string[])[]>>
}

/** A fraction as text, e.g. `2.6 %`. */
export function percent(fraction: number, digits = 1): string {
  return `${(fraction * 100).toFixed(digits)} %`
}

export function whole(value: number): string {
  return Math.round(value).toLocaleString('en-US')
}
