#!/usr/bin/env node
import { main } from './main.ts'

await main(new URL('../../package.json', import.meta.url))
