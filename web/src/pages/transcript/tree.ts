import type { TreeNode } from "@/api/types";

/** A conversation and those that came from it. */
export interface Branch {
  node: TreeNode;
  children: Branch[];
}

/** A tree of the nodes; one whose parent is not among them stands at the top, and no circle is followed. */
export function grown(nodes: TreeNode[]): Branch[] {
  const branches = new Map(nodes.map((node) => [node.id, { node, children: [] as Branch[] }]));
  const tops: Branch[] = [];
  for (const branch of branches.values()) {
    const parent = branch.node.parent_id === branch.node.id ? undefined : branches.get(branch.node.parent_id ?? "");
    (parent && !isBelow(branch.node, parent.node, branches) ? parent.children : tops).push(branch);
  }
  return tops;
}

/** Whether *node* stands somewhere above *other*: then it cannot be its child. */
function isBelow(node: TreeNode, other: TreeNode, branches: Map<string, Branch>): boolean {
  const seen = new Set<string>();
  for (let one: TreeNode | undefined = other; one && !seen.has(one.id); one = branches.get(one.parent_id ?? "")?.node) {
    if (one.id === node.id) return true;
    seen.add(one.id);
  }
  return false;
}
