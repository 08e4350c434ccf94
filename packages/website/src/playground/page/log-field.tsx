import { useEffect, useState } from 'preact/hooks'

/** Access logs of a visitor. */
export interface Logs {
  readonly files: readonly Blob[]
  /** A description of dropped files. Undefined if the log is the text of the field. */
  readonly name?: string
  readonly text: string
}

export const NO_LOGS: Logs = { files: [], text: '' }

/** Characters in the field. A browser freezes while it lays out a longer text, so that becomes a file. */
const MOST_PASTED = 100_000
const SIZE = new Intl.NumberFormat('en', { style: 'unit', unit: 'megabyte', maximumSignificantDigits: 2 })

interface LogFieldProps {
  readonly logs: Logs
  readonly onChange: (logs: Logs) => void
}

/** A field for pasted lines and for files, which can be dropped anywhere on the page. */
export function LogField({ logs, onChange }: LogFieldProps) {
  const [over, setOver] = useState(false)
  const choose = (files: FileList | null | undefined): void => {
    if (files != null && files.length > 0) onChange(filesOf([...files]))
  }
  useEffect(() => {
    // Otherwise the browser would open the file instead of the page.
    const dragged = (event: DragEvent): void => {
      const { dataTransfer, type } = event
      if (dataTransfer?.types.includes('Files')) {
        event.preventDefault()
        if (type === 'drop') choose(dataTransfer.files)
      }
      setOver(type === 'dragover')
    }
    const types = ['dragover', 'dragleave', 'drop'] as const
    for (const type of types) addEventListener(type, dragged)
    return () => {
      for (const type of types) removeEventListener(type, dragged)
    }
  }, [onChange])
  return (
    <div class={over ? 'control log over' : 'control log'}>
      <label for={logs.name === undefined ? 'set-log' : 'set-log-file'}>Access log (it never leaves this page)</label>
      {logs.name === undefined ? (
        <textarea
          id="set-log"
          rows={4}
          spellcheck={false}
          placeholder="Drop files here (gzip too), or paste lines"
          value={logs.text}
          onInput={({ currentTarget: { value } }) => onChange(pasted(value))}
          onPaste={(event) => {
            const text = event.clipboardData?.getData('text') ?? ''
            const { value, selectionStart, selectionEnd } = event.currentTarget
            if (value.length + text.length <= MOST_PASTED) return
            event.preventDefault()
            onChange(pasted(value.slice(0, selectionStart) + text + value.slice(selectionEnd)))
          }}
        />
      ) : (
        <p>
          {logs.name}{' '}
          <button type="button" class="quiet" onClick={() => onChange(NO_LOGS)}>
            Remove
          </button>
        </p>
      )}
      <label class="choose">
        Choose files
        <input
          id="set-log-file"
          class="hidden"
          type="file"
          multiple
          onChange={({ currentTarget }) => {
            choose(currentTarget.files)
            // So that the same file can be chosen again after a change.
            currentTarget.value = ''
          }}
        />
      </label>
    </div>
  )
}

function pasted(text: string): Logs {
  if (text.length > MOST_PASTED) return filesOf([new File([text], 'Pasted text')])
  return text === '' ? NO_LOGS : { files: [new Blob([text])], text }
}

function filesOf(files: readonly File[]): Logs {
  const size = files.reduce((sum, file) => sum + file.size, 0)
  const [first] = files
  const name = files.length === 1 ? (first?.name ?? '') : `${files.length} files`
  return { files, name: `${name}, ${SIZE.format(size / 1e6)}`, text: '' }
}
