/** What every chart needs of ECharts; series are loaded with their first chart. */
import { AriaComponent, GridComponent, TooltipComponent } from "echarts/components";
import * as echarts from "echarts/core";
import { CanvasRenderer } from "echarts/renderers";

echarts.use([AriaComponent, CanvasRenderer, GridComponent, TooltipComponent]);

export { echarts };
