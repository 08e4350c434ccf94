#!/usr/bin/env node
// Before a package is published: npm would publish the manifest as it stands here, with versions such as `workspace:^` and with the
// way to sources. pnpm writes the one that users get, with the catalog and `src/pnpmfile.cjs`.
const agent = process.env['npm_config_user_agent'] ?? ''
if (!agent.startsWith('pnpm/')) {
  console.error('Published with npm, this package could not be installed. Use `pnpm publish`, as .github/workflows/release.yml does.')
  process.exit(1)
}
