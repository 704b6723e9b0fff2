import type { TreeNode } from "@/api/types";

/** A session and the sessions derived from it. */
export interface SessionBranch {
  node: TreeNode;
  children: SessionBranch[];
}

/** Build a tree; nodes without a known parent are roots, and cycles are broken. */
export function buildTree(nodes: TreeNode[]): SessionBranch[] {
  const branches = new Map(nodes.map((node) => [node.id, { node, children: [] as SessionBranch[] }]));
  const roots: SessionBranch[] = [];
  for (const branch of branches.values()) {
    const parent = branch.node.parent_id === branch.node.id ? undefined : branches.get(branch.node.parent_id ?? "");
    (parent && !isAncestor(branch.node, parent.node, branches) ? parent.children : roots).push(branch);
  }
  return roots;
}

/** Whether *node* is an ancestor of *other*. */
function isAncestor(node: TreeNode, other: TreeNode, branches: Map<string, SessionBranch>): boolean {
  const seen = new Set<string>();
  for (let one: TreeNode | undefined = other; one && !seen.has(one.id); one = branches.get(one.parent_id ?? "")?.node) {
    if (one.id === node.id) return true;
    seen.add(one.id);
  }
  return false;
}
