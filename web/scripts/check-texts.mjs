/** Fails if a text of a catalogue is used nowhere. A missing one is a type error, which tsc reports. */
import { readdirSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import ts from "typescript";

const web = dirname(dirname(fileURLToPath(import.meta.url)));
const plugin = join(web, "../plugins/hermes-achievements/dashboard/src");
const catalogues = [
  ...readdirSync(join(web, "src/i18n/english")).map((name) => join(web, "src/i18n/english", name)),
  join(plugin, "texts.ts"),
];

const { config } = ts.readConfigFile(join(web, "tsconfig.json"), ts.sys.readFile);
const { fileNames, options } = ts.parseJsonConfigFileContent(config, ts.sys, web);
const program = ts.createProgram([...new Set([...fileNames, ...catalogues])], { ...options, noEmit: true });
const checker = program.getTypeChecker();

/** Every key of the catalogues that is not a group of keys. */
const unused = new Map();
for (const path of catalogues) {
  const source = program.getSourceFile(path);
  const collect = (literal, name) => {
    for (const property of literal.properties) {
      const key = `${name}.${property.name?.getText() ?? ""}`;
      if (property.initializer && ts.isObjectLiteralExpression(property.initializer))
        collect(property.initializer, key);
      else unused.set(property, key);
    }
  };
  source?.forEachChild((statement) => {
    if (!ts.isVariableStatement(statement)) return;
    for (const { name, initializer } of statement.declarationList.declarations) {
      // `TEXTS`, the texts by language, is not a text.
      if (initializer && ts.isObjectLiteralExpression(initializer) && name.getText() !== "TEXTS") {
        collect(initializer, name.getText());
      }
    }
  });
}

function markAll(declaration) {
  unused.delete(declaration);
  const literal = declaration?.initializer;
  if (literal && ts.isObjectLiteralExpression(literal)) literal.properties.forEach(markAll);
}

function markProperty(type, name, isWhole) {
  for (const part of type.isUnion() ? type.types : [type]) {
    for (const declaration of part.getProperty(name)?.declarations ?? []) {
      if (isWhole) markAll(declaration);
      else unused.delete(declaration);
    }
  }
}

/** Whether an expression is read further, so that only the parts read from it are used. */
function isReadFurther(node) {
  const { parent } = node;
  const isObject =
    (ts.isPropertyAccessExpression(parent) || ts.isElementAccessExpression(parent)) && parent.expression === node;
  return isObject || (ts.isVariableDeclaration(parent) && parent.initializer === node);
}

function visit(node) {
  if (ts.isPropertyAccessExpression(node)) {
    markProperty(checker.getTypeAtLocation(node.expression), node.name.text, !isReadFurther(node));
  } else if (ts.isElementAccessExpression(node)) {
    const object = checker.getTypeAtLocation(node.expression);
    const key = checker.getTypeAtLocation(node.argumentExpression);
    const names = (key.isUnion() ? key.types : [key]).map((one) => (one.isStringLiteral() ? one.value : null));
    const all = object.getProperties().map((property) => property.name);
    for (const name of names.includes(null) ? all : names) markProperty(object, name, true);
  } else if (ts.isBindingElement(node) && ts.isObjectBindingPattern(node.parent)) {
    const name = (node.propertyName ?? node.name).getText();
    markProperty(checker.getTypeAtLocation(node.parent), name, false);
  }
  node.forEachChild(visit);
}

for (const source of program.getSourceFiles()) {
  const isOwn = source.fileName.startsWith(join(web, "src")) || source.fileName.startsWith(plugin);
  if (isOwn && !catalogues.includes(source.fileName)) visit(source);
}
for (const [property, name] of unused) {
  const source = property.getSourceFile();
  const { line } = source.getLineAndCharacterOfPosition(property.getStart());
  process.stderr.write(`${relative(web, source.fileName)}:${line + 1}: unused text: ${name}\n`);
}
if (unused.size > 0) process.exit(1);
