/**
 * @generated SignedSource<<01bfaa2a31c25d63a208fcc7ab292a89>>
 * @lightSyntaxTransform
 */

/* tslint:disable */
/* eslint-disable */
// @ts-nocheck

import type { ConcreteRequest } from 'relay-runtime';
import type { FragmentRefs } from "relay-runtime";
export type peoplePersonQuery$variables = {
  id: string;
};
export type peoplePersonQuery$data = {
  readonly node: {
    readonly " $fragmentSpreads": FragmentRefs<"people_person">;
  } | null | undefined;
};
export type peoplePersonQuery = {
  response: peoplePersonQuery$data;
  variables: peoplePersonQuery$variables;
};

const node: ConcreteRequest = (function(){
var v0 = [
  {
    "defaultValue": null,
    "kind": "LocalArgument",
    "name": "id"
  }
],
v1 = [
  {
    "kind": "Variable",
    "name": "id",
    "variableName": "id"
  }
];
return {
  "fragment": {
    "argumentDefinitions": (v0/*:: as any*/),
    "kind": "Fragment",
    "metadata": null,
    "name": "peoplePersonQuery",
    "selections": [
      {
        "alias": null,
        "args": (v1/*:: as any*/),
        "concreteType": null,
        "kind": "LinkedField",
        "name": "node",
        "plural": false,
        "selections": [
          {
            "args": null,
            "kind": "FragmentSpread",
            "name": "people_person"
          }
        ],
        "storageKey": null
      }
    ],
    "type": "Query",
    "abstractKey": null
  },
  "kind": "Request",
  "operation": {
    "argumentDefinitions": (v0/*:: as any*/),
    "kind": "Operation",
    "name": "peoplePersonQuery",
    "selections": [
      {
        "alias": null,
        "args": (v1/*:: as any*/),
        "concreteType": null,
        "kind": "LinkedField",
        "name": "node",
        "plural": false,
        "selections": [
          {
            "alias": null,
            "args": null,
            "kind": "ScalarField",
            "name": "__typename",
            "storageKey": null
          },
          {
            "alias": null,
            "args": null,
            "kind": "ScalarField",
            "name": "id",
            "storageKey": null
          },
          {
            "kind": "InlineFragment",
            "selections": [
              {
                "alias": null,
                "args": null,
                "kind": "ScalarField",
                "name": "firstName",
                "storageKey": null
              }
            ],
            "type": "Person",
            "abstractKey": null
          }
        ],
        "storageKey": null
      }
    ]
  },
  "params": {
    "cacheID": "254927724f7d8fad6c0eaaea011df659",
    "id": null,
    "metadata": {},
    "name": "peoplePersonQuery",
    "operationKind": "query",
    "text": "query peoplePersonQuery(\n  $id: ID!\n) {\n  node(id: $id) {\n    __typename\n    ...people_person\n    id\n  }\n}\n\nfragment people_person on Person {\n  firstName\n  id\n}\n"
  }
};
})();

(node as any).hash = "44ed3b5050f4e3d34869d64da086170c";

export default node;
