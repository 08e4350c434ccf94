import type { Table } from '../tables/tables.ts'
import { Scroll } from './scroll.tsx'

/** A table of figures. */
export function Figures({ table, kind }: { readonly table: Table; readonly kind?: string }) {
  const { name, caption, columns, rows, code } = table
  return (
    <Scroll label={name}>
      <table class={kind}>
        {caption !== undefined && <caption>{caption}</caption>}
        {columns.length > 0 && (
          <thead>
            <tr>
              {columns.map((label) => (
                <th scope="col" key={label}>
                  {label}
                </th>
              ))}
            </tr>
          </thead>
        )}
        <tbody>
          {rows.map(([about = '', ...cells]) => (
            <tr key={about}>
              <th scope="row">{code ? <code>{about}</code> : about}</th>
              {cells.map((cell, index) => (
                <td key={index}>{cell}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  )
}
