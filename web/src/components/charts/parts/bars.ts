import { BarChart, LineChart } from "echarts/charts";
import { echarts } from "./core";

echarts.use([BarChart, LineChart]);

export { echarts };
