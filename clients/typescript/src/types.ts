/** Types of calls, made from those of the OpenAPI document. */

import type { components, operations } from "./openapi.js";
import type { OPERATIONS } from "./operations.js";

/** Every record of the interface by its name: `Schemas["WholeEvent"]`. */
export type Schemas = components["schemas"];

/** The operations of the interface; the OpenAPI document calls it `operationId`. */
export type OperationName = keyof typeof OPERATIONS & keyof operations;

type Parameters<N extends OperationName> = operations[N]["parameters"];
type OrNothing<T> = [NonNullable<T>] extends [never] ? unknown : NonNullable<T>;
type PathOf<N extends OperationName> = Parameters<N> extends { path: infer P } ? OrNothing<P> : unknown;
type QueryOf<N extends OperationName> = Parameters<N> extends { query?: infer Q } ? OrNothing<Q> : unknown;
type Content<T> = T extends { content: infer C } ? Media<C> : never;
type Media<C> =
  | (C extends { "application/json": infer B } ? B : never)
  | (C extends { "multipart/form-data": unknown } ? FormData : never)
  | (C extends { "application/octet-stream": unknown } ? Blob | ArrayBuffer | ArrayBufferView : never);

/** What an operation takes as its body. */
export type BodyOf<N extends OperationName> = operations[N] extends { requestBody: infer R }
  ? Content<R>
  : operations[N] extends { requestBody?: infer R }
    ? Content<NonNullable<R>>
    : never;
type BodyPart<N extends OperationName> = [BodyOf<N>] extends [never]
  ? unknown
  : operations[N] extends { requestBody: unknown }
    ? { body: BodyOf<N> }
    : { body?: BodyOf<N> };
type WorkspaceOptional<T> = T extends { workspace_id: infer W } ? Omit<T, "workspace_id"> & { workspace_id?: W } : T;

/** Parameters of the path and of the query by their names, and `body`. */
export type Input<N extends OperationName> = WorkspaceOptional<PathOf<N>> & QueryOf<N> & BodyPart<N>;

/** Those of the query alone. */
export type Query<N extends OperationName> = QueryOf<N> & Record<never, never>;

type Json<R> = R extends { content: { "application/json": infer B } } ? B : undefined;
type Successes<R> = { [S in keyof R & (200 | 201 | 202 | 204)]: Json<R[S]> };
/** What an operation answers. */
export type Answer<N extends OperationName> = Successes<operations[N]["responses"]>[keyof Successes<operations[N]["responses"]>];

/** The operations that answer with a page of a list. */
export type ListName = { [N in OperationName]: Answer<N> extends { items: readonly unknown[] } ? N : never }[OperationName];
export type Item<N extends ListName> = Answer<N> extends { items: readonly (infer I)[] } ? I : never;

/** Arguments of a call, of which those may be left out that need not be there. */
export type Arguments<N extends OperationName, O> = Record<never, never> extends Input<N>
  ? [input?: Input<N>, options?: O]
  : [input: Input<N>, options?: O];
