export type Maybe<T> = T | null;
export type InputMaybe<T> = Maybe<T>;
/** All built-in and custom scalars, mapped to their actual values */
export type Scalars = {
  ID: { input: string; output: string | number; }
  String: { input: string; output: string; }
  Boolean: { input: boolean; output: boolean; }
  Int: { input: number; output: number; }
  Float: { input: number; output: number; }
  /** For routers: the `__typename` and the `id` of a record. */
  _Any: { input: unknown; output: unknown; }
};

/** Where a stretch of a connection begins and ends, and whether there is more on either side. */
export type PageInfo = {
  /** The cursor of the last edge: pass it as `after` to go on. Null when there are no edges. */
  readonly endCursor?: Maybe<Scalars['String']['output']>;
  /** Whether records follow after the last edge. */
  readonly hasNextPage: Scalars['Boolean']['output'];
  /** Whether records come before the first edge. True whenever `after` was given. */
  readonly hasPreviousPage: Scalars['Boolean']['output'];
  /** The cursor of the first edge; null when there are no edges. */
  readonly startCursor?: Maybe<Scalars['String']['output']>;
};

/** A person known to the recruiting service. */
export type Person = {
  readonly firstName?: Maybe<Scalars['String']['output']>;
  readonly id: Scalars['ID']['output'];
};

/** A stretch of a list of Person, with a cursor on every record. */
export type PersonConnection = {
  /** The records, each with its cursor. */
  readonly edges: ReadonlyArray<PersonEdge>;
  /** The records alone, for those who need no cursors. */
  readonly nodes: ReadonlyArray<Person>;
  /** Where this stretch begins and ends, and whether there is more. */
  readonly pageInfo: PageInfo;
  /**
   * How many records the whole list has, whatever the stretch. The service does not tell, so that all its pages
   * are read for it; what was counted less than 5 seconds ago is given again.
   */
  readonly totalCount?: Maybe<Scalars['Int']['output']>;
};

/** One record of a list of Person, and where it stands, for example in `personsConnection`. */
export type PersonEdge = {
  /** Opaque. As `after`, it resumes exactly behind this record. It stays good over restarts. */
  readonly cursor: Scalars['String']['output'];
  /** The record itself. */
  readonly node: Person;
};

/** One page of persons. */
export type PersonPage = {
  /** Elements of the current page. */
  readonly items: ReadonlyArray<Person>;
  /** Where this page ends, and whether another one follows. */
  readonly pageInfo: UpstreamPageInfo;
};

export type Query = {
  /** For routers: records by their ids, in the order in which they are asked for; null for those that there are not. */
  readonly _entities: ReadonlyArray<Maybe<_Entity>>;
  /** For routers: what this subgraph offers a supergraph. */
  readonly _service: _Service;
  /**
   * All records of `persons`, read page by page on the server and given as one list, each once and in order.
   * Null with an error when the list cannot be read to its end. One operation drains at most 100000 records in all.
   */
  readonly allPersons?: Maybe<ReadonlyArray<Person>>;
  /**
   * The Person with this id; null when there is none. The service has no such field, so the record is looked
   * for in `persons`: where it was met last, near there, at both ends of the list, and then by a walk
   * of the whole, at most one in 30 seconds. What was added to the middle of the list by others is missing so long.
   */
  readonly person?: Maybe<Person>;
  /** Persons, page by page: at most 50 each, forward only. */
  readonly persons: PersonPage;
  /**
   * The records of `persons` as a Relay connection: any number at a time, and a cursor on every edge that
   * resumes exactly behind it.
   */
  readonly personsConnection?: Maybe<PersonConnection>;
};


export type Query_EntitiesArgs = {
  representations: ReadonlyArray<Scalars['_Any']['input']>;
};


export type QueryAllPersonsArgs = {
  after?: InputMaybe<Scalars['String']['input']>;
  limit?: InputMaybe<Scalars['Int']['input']>;
};


export type QueryPersonArgs = {
  id: Scalars['ID']['input'];
};


export type QueryPersonsArgs = {
  after?: InputMaybe<Scalars['String']['input']>;
  first?: InputMaybe<Scalars['Int']['input']>;
};


export type QueryPersonsConnectionArgs = {
  after?: InputMaybe<Scalars['String']['input']>;
  before?: InputMaybe<Scalars['String']['input']>;
  first?: InputMaybe<Scalars['Int']['input']>;
  last?: InputMaybe<Scalars['Int']['input']>;
};

/** Information about one page. */
export type UpstreamPageInfo = {
  /** Opaque cursor that points at the last element of the page. */
  readonly endCursor?: Maybe<Scalars['String']['output']>;
  /** Number of elements requested for the page. */
  readonly first: Scalars['Int']['output'];
  /** True when a next page has elements. */
  readonly hasNextPage: Scalars['Boolean']['output'];
};

/** For routers: the types whose records other subgraphs can refer to. */
export type _Entity = Person;

/** For routers: what this subgraph offers a supergraph. */
export type _Service = {
  /** The schema in SDL, with the directives of Federation 2. */
  readonly sdl: Scalars['String']['output'];
};
