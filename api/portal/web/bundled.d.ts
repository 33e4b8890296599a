// The types of imports that the bundler resolves. A class that a style sheet does not have is
// undefined; test/unit/portal/css_classes.test.ts finds such uses.
declare module '*.module.css' {
  const classes: Readonly<Record<string, string>>;
  export default classes;
}

declare module '*.css';

declare module '*?worker&url' {
  const address: string;
  export default address;
}
