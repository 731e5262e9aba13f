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

/** The first and last cursor of the returned edges, and whether the list has more records on either side. */
export type PageInfo = {
  /** The cursor of the last edge; null without edges. Pass it as `after` to continue. */
  readonly endCursor?: Maybe<Scalars['String']['output']>;
  /** Whether records follow the last edge. */
  readonly hasNextPage: Scalars['Boolean']['output'];
  /** Whether records precede the first edge. Always true if `after` is given. */
  readonly hasPreviousPage: Scalars['Boolean']['output'];
  /** The cursor of the first edge; null without edges. */
  readonly startCursor?: Maybe<Scalars['String']['output']>;
};

/** A person known to the recruiting service. */
export type Person = {
  readonly firstName?: Maybe<Scalars['String']['output']>;
  readonly id: Scalars['ID']['output'];
};

/** A part of a list of Person, with a cursor on every record. */
export type PersonConnection = {
  /** The records, each with its cursor. */
  readonly edges: ReadonlyArray<PersonEdge>;
  /** The records without their cursors. */
  readonly nodes: ReadonlyArray<Person>;
  /** The first and last cursor of this part, and whether the list has more records. */
  readonly pageInfo: PageInfo;
  /**
   * The number of records in the whole list. The service does not report it, so all pages are read to count them. The
   * count is reused for 5 seconds.
   */
  readonly totalCount?: Maybe<Scalars['Int']['output']>;
};

/** One record of a list of Person with its cursor, for example in `personsConnection`. */
export type PersonEdge = {
  /** An opaque text. Passed as `after`, it resumes exactly after this record. It remains valid across restarts. */
  readonly cursor: Scalars['String']['output'];
  /** The record. */
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
  /** For routers: records by their ids, in the order of the representations; null for a record that does not exist. */
  readonly _entities: ReadonlyArray<Maybe<_Entity>>;
  /** For routers: what this subgraph offers to a supergraph. */
  readonly _service: _Service;
  /**
   * All records of `persons`, each once and in order. The gateway reads the list page by page and returns it as one list.
   * Null with an error if the list cannot be read to its end. One operation drains at most 100000 records in total.
   */
  readonly allPersons?: Maybe<ReadonlyArray<Person>>;
  /**
   * The Person with this id; null if it does not exist. The service has no such field, so the record is looked up
   * in `persons`: first at its last known position and near it, then at both ends of the list, then by
   * reading the whole list, at most once in 30 seconds. A record inserted in the middle of the list by someone else
   * may not be found for up to 30 seconds.
   */
  readonly person?: Maybe<Person>;
  /** Persons, page by page: at most 50 each, forward only. */
  readonly persons: PersonPage;
  /**
   * The records of `persons` as a Relay connection: up to 500 at a time, with a cursor on every edge that resumes
   * exactly after it.
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

/** For routers: what this subgraph offers to a supergraph. */
export type _Service = {
  /** The schema as SDL, with the directives of Federation 2. */
  readonly sdl: Scalars['String']['output'];
};
