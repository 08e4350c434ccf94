interface Link {
  readonly text: string
  readonly link: string
  readonly target?: '_self'
}

/** The most versions of the site to keep. */
const MOST = 8

/** The versions whose sites are published, from the tags of releases, newest first: the last release of each minor version. */
export function publishedOf(tags: readonly string[]): string[] {
  const releases = tags
    .flatMap((tag) => {
      const found = /^v(\d+)\.(\d+)\.(\d+)$/.exec(tag)
      return found === null ? [] : [{ version: tag.slice(1), numbers: found.slice(1).map(Number) as [number, number, number] }]
    })
    .sort(({ numbers: [a, b, c] }, { numbers: [d, e, f] }) => d - a || e - b || f - c)
  const minors = new Set<string>()
  return releases
    .filter(({ numbers: [major, minor] }) => {
      const name = `${major}.${minor}`
      return !minors.has(name) && minors.add(name)
    })
    .map(({ version }) => version)
    .slice(0, MOST)
}

/** A menu of the versions whose sites are beside this one, in folders with their names. */
export function menuOf(version: string, versions: readonly string[]): { readonly text: string; readonly items: readonly Link[] } {
  const others = versions.filter((other) => other !== version)
  return {
    text: version,
    items: [
      { text: `This is version ${version}`, link: '/overview' },
      // Above the top of this site, which VitePress does not manage.
      ...others.map((other) => ({ text: other, link: `/../${other}/index.html`, target: '_self' as const })),
    ],
  }
}

/** The page for addresses that no version has. */
export function nowhereOf(version: string): string {
  return `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>There is no such page | Weir</title>
<style>body { margin: 15vh auto; max-width: 40ch; padding: 0 20px; font: 16px/1.6 system-ui, sans-serif; }</style>
</head>
<body>
<h1>There is no such page</h1>
<p><a id="newest">The documentation of Weir ${version}</a></p>
<script>
// This page is served for any missing address, so the top is the folder above a version's folder.
const [, above] = /^(.*?\\/)\\d+\\.\\d+\\.\\d+\\//.exec(location.pathname) ?? /^(.*\\/)/.exec(location.pathname)
document.getElementById('newest').href = above + '${version}/index.html'
</script>
</body>
</html>
`
}

/** The page above all versions, which redirects to one of them. */
export function forwardTo(version: string): string {
  const to = `${version}/index.html`
  return `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>Weir</title>
<meta http-equiv="refresh" content="0; url=${to}">
</head>
<body><p><a href="${to}">Weir ${version}</a></p></body>
</html>
`
}
