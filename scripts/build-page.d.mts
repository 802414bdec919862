export function buildPage(): Promise<{ first: number; all: number }>;
export function measurePage(): { entry: number; first: number; all: number };
