export type PageInfo = { hasNextPage: boolean; hasPreviousPage: boolean; startCursor?: string|null; endCursor?: string|null };
