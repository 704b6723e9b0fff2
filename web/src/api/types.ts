/** Types of server responses; build/schema.d.ts is generated from the OpenAPI document of the server. */
import type { components } from "../../build/schema";

type Schemas = components["schemas"];

export type Analytics = Schemas["Analytics"];
export type Boundaries = Schemas["Boundaries"];
export type Boundary = Schemas["Boundary"];
export type AnalyticsChoices = Schemas["AnalyticsChoices"];
export type Budget = Schemas["BudgetView"];
export type BulkResult = Schemas["BulkReport"];
export type Calendar = Schemas["CalendarView"];
export type ConversationHits = Schemas["ConversationHitsView"];
export type Facet = Schemas["FacetCount"];
export type Facets = Schemas["FacetsView"];
export type GatewayView = Schemas["GatewayState"];
export type GroupedHits = Schemas["GroupedHitsView"];
export type Hooks = Schemas["Hooks"];
export type Matches = Schemas["MatchesView"];
export type Message = Schemas["MessageView"];
export type MessagePage = Schemas["MessagePageView"];
export type Outline = Schemas["OutlineView"];
export type Overview = Schemas["Overview"];
export type PendingChange = Schemas["PendingChangeItem"];
export type PluginItem = Schemas["PluginItem"];
export type PluginTab = Schemas["PluginTab"];
export type Progress = Schemas["ProgressView"];
export type SearchHit = Schemas["SearchHit"];
export type SessionDetail = Schemas["SessionDetail"];
export type SessionItem = Schemas["SessionItem"];
export type SessionPage = Schemas["SessionPageView"];
export type SettingItem = Schemas["SettingItem"];
export type SettingList = Schemas["SettingList"];
export type ToolCall = Schemas["ToolCallView"];
export type WorkspaceList = Schemas["WorkspaceList"];
export type TreeNode = Schemas["Relative"];
