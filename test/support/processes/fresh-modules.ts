import { vi } from 'vitest';

// A worker keeps what it has loaded for the next test file, except for the modules of `test`, which register hooks.
vi.resetModules();
