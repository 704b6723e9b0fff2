/** Write build/rpc.d.ts: the methods and events of the RPC, from its OpenRPC document. */
import { readFile, writeFile } from "node:fs/promises";
import openapiTS, { astToString } from "openapi-typescript";

const reference = new URL("../../docs/reference/rpc.openrpc.json", import.meta.url);
const target = new URL("../build/rpc.d.ts", import.meta.url);

/** The schema of an object with these properties; `required` are the names of those that are always there. */
const object = (properties, required = Object.keys(properties)) => ({ type: "object", properties, required });

const { methods, components, "x-events": events } = JSON.parse(await readFile(reference, "utf8"));

const params = (method) =>
  object(
    Object.fromEntries(method.params.map((one) => [one.name, one.schema])),
    method.params.filter((one) => one.required).map((one) => one.name),
  );
const methodTypes = methods.map((one) => [one.name, object({ params: params(one), result: one.result.schema })]);
const eventTypes = events.map((one) => [one.name, one.payload]);
const schemas = {
  ...components.schemas,
  RpcMethods: object(Object.fromEntries(methodTypes)),
  RpcEvents: object(Object.fromEntries(eventTypes)),
};
const ast = await openapiTS({
  openapi: "3.1.0",
  info: { title: "RPC", version: "1" },
  paths: {},
  components: { schemas },
});
await writeFile(target, astToString(ast));
