import { HeatmapChart } from "echarts/charts";
import { CalendarComponent, VisualMapComponent } from "echarts/components";
import { echarts } from "./core";

echarts.use([CalendarComponent, HeatmapChart, VisualMapComponent]);

export { echarts };
