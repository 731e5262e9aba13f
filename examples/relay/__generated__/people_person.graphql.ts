/**
 * @generated SignedSource<<75f2d75dc7378199a656cb25811ded30>>
 * @lightSyntaxTransform
 */

/* tslint:disable */
/* eslint-disable */
// @ts-nocheck

import type { ReaderFragment } from 'relay-runtime';
import type { FragmentRefs } from "relay-runtime";
export type people_person$data = {
  readonly firstName: string | null | undefined;
  readonly id: string;
  readonly " $fragmentType": "people_person";
};
export type people_person$key = {
  readonly " $data"?: people_person$data;
  readonly " $fragmentSpreads": FragmentRefs<"people_person">;
};

import peoplePersonQuery_graphql from './peoplePersonQuery.graphql';

const node: ReaderFragment = {
  "argumentDefinitions": [],
  "kind": "Fragment",
  "metadata": {
    "refetch": {
      "connection": null,
      "fragmentPathInResult": [
        "node"
      ],
      "operation": peoplePersonQuery_graphql,
      "identifierInfo": {
        "identifierField": "id",
        "identifierQueryVariableName": "id"
      }
    }
  },
  "name": "people_person",
  "selections": [
    {
      "alias": null,
      "args": null,
      "kind": "ScalarField",
      "name": "firstName",
      "storageKey": null
    },
    {
      "alias": null,
      "args": null,
      "kind": "ScalarField",
      "name": "id",
      "storageKey": null
    }
  ],
  "type": "Person",
  "abstractKey": null
};

(node as any).hash = "44ed3b5050f4e3d34869d64da086170c";

export default node;
