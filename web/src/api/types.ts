/** Types of server responses; build/schema.d.ts is generated from the OpenAPI document of the server. */
import type { components } from "../../build/schema";

type Schemas = components["schemas"];

export type Analytics = Schemas["Analytics"];
export type Boundaries = Schemas["Boundaries"];
export type Boundary = Schemas["Boundary"];
export type BulkResult = Schemas["BulkReport"];
export type Calendar = Schemas["CalendarView"];
export type Facet = Schemas["Counted"];
export type Facets = Schemas["Facets"];
export type GatewayView = Schemas["GatewayView"];
export type Hooks = Schemas["Hooks"];
export type Message = Schemas["Message"];
export type MessagePage = Schemas["MessagePage"];
export type Overview = Schemas["Overview"];
export type PluginItem = Schemas["PluginItem"];
export type PluginTab = Schemas["PluginTab"];
export type Progress = Schemas["Progress"];
export type SearchHit = Schemas["Hit"];
export type SearchPage = Schemas["Hits"];
export type SessionDetail = Schemas["SessionDetail"];
export type SessionItem = Schemas["SessionItem"];
export type SessionPage = Schemas["SessionPage"];
export type SettingItem = Schemas["SettingItem"];
export type SettingList = Schemas["SettingList"];
export type ToolCall = Schemas["ToolCall"];
export type TreeNode = Schemas["Relative"];
