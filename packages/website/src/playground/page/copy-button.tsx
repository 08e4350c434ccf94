import { useState } from 'preact/hooks'

interface CopyButtonProps {
  readonly label: string
  readonly text: string
  /** A confirmation. */
  readonly done: string
  /** Instructions for a browser that does not allow it. */
  readonly otherwise: string
}

/** A button that copies a text, with a confirmation beside it. */
export function CopyButton({ label, text, done, otherwise }: CopyButtonProps) {
  const [copied, setCopied] = useState<{ readonly text: string; readonly said: string }>()
  const says = (said: string) => () => setCopied({ text, said })
  // Async, because a page without https has no clipboard, so the call itself throws.
  const write = async (): Promise<void> => navigator.clipboard.writeText(text)
  const copy = (): void => void write().then(says(done), says(otherwise))
  return (
    <span class="copy">
      <button type="button" class="quiet" onClick={copy}>
        {label}
      </button>
      {/* Empty again as soon as the button would copy another text. */}
      <span role="status">{copied?.text === text ? copied.said : ''}</span>
    </span>
  )
}
