import { vi } from 'vitest';

// A worker keeps the libraries that it has loaded for the next test file. The project's own modules are loaded anew.
vi.resetModules();
