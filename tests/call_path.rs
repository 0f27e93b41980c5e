//! Follows calls through the source of the crates from one function on, in source order, and notes which crate first
//! makes each of some values. Knows only as much about types as the way of a message needs: parameters, fields, return
//! types and `let`. Skips calls that it cannot resolve.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "the grammar of Rust is syn's; what the reader does not know it passes over"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use syn::visit::{self, Visit};
use syn::{Block, Expr, FnArg, ImplItem, Item, Member, Pat, ReturnType, Signature, Type, UseTree};

use crate::{list, read};

/// Calls whose arguments run only after a failure.
const ON_FAILURE: [&str; 5] = [
    "inspect_err",
    "map_err",
    "or_else",
    "unwrap_or_else",
    "unwrap_or_default",
];

/// A type of one of the crates: crate and name.
type TypeName = (String, String);

/// The functions and fields of some crates.
#[derive(Default)]
pub struct SourceIndex {
    files: Vec<File>,
    functions: Vec<Function>,
    types: BTreeSet<TypeName>,
    fields: BTreeMap<(TypeName, String), TypeName>,
}

struct File {
    package: String,
    /// The last name of its module; empty for the crate's root.
    module: String,
    /// The full path of each name that a `use` imports.
    uses: BTreeMap<String, Vec<String>>,
}

struct Function {
    file: usize,
    of: Option<TypeName>,
    signature: Signature,
    block: Block,
}

impl SourceIndex {
    /// Reads the source of some crates below a folder, without their tests.
    pub fn read(folder: &Path, crates: &BTreeSet<String>) -> Self {
        let mut index = Self::default();
        let mut items = Vec::new();
        for package in crates {
            let source = folder.join(package).join("src");
            index.read_folder(&source, &package.replace('-', "_"), "", &mut items);
        }
        for (file, list) in &items {
            index.add_types(*file, list);
        }
        for (file, list) in items {
            index.add_items(file, list);
        }
        index
    }

    fn read_folder(
        &mut self,
        folder: &Path,
        package: &str,
        above: &str,
        items: &mut Vec<(usize, Vec<Item>)>,
    ) {
        for path in list(folder) {
            let stem = path.file_stem().expect("a file has a name");
            let stem = stem.to_string_lossy();
            if stem == "tests" {
                continue;
            }
            if path.is_dir() {
                self.read_folder(&path, package, &stem, items);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = read(&path);
                let parsed = syn::parse_file(&text)
                    .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
                let module = match &*stem {
                    "lib" | "main" => "",
                    "mod" => above,
                    stem => stem,
                };
                let mut uses = BTreeMap::new();
                for item in &parsed.items {
                    if let Item::Use(item) = item {
                        add_uses(&item.tree, &[], &mut uses);
                    }
                }
                items.push((self.files.len(), parsed.items));
                self.files.push(File {
                    package: package.to_owned(),
                    module: module.to_owned(),
                    uses,
                });
            }
        }
    }

    fn add_types(&mut self, file: usize, items: &[Item]) {
        let package = self.files[file].package.clone();
        for item in items {
            let name = match item {
                Item::Struct(item) => &item.ident,
                Item::Enum(item) => &item.ident,
                _ => continue,
            };
            self.types.insert((package.clone(), name.to_string()));
        }
    }

    fn add_items(&mut self, file: usize, items: Vec<Item>) {
        for item in items {
            match item {
                Item::Fn(item) => self.functions.push(Function {
                    file,
                    of: None,
                    signature: item.sig,
                    block: *item.block,
                }),
                Item::Impl(item) if item.trait_.is_none() => {
                    let of = self.type_of(file, None, &item.self_ty);
                    for item in item.items {
                        if let ImplItem::Fn(item) = item {
                            self.functions.push(Function {
                                file,
                                of: of.clone(),
                                signature: item.sig,
                                block: item.block,
                            });
                        }
                    }
                }
                Item::Struct(item) => {
                    let own = (self.files[file].package.clone(), item.ident.to_string());
                    for field in item.fields {
                        let of = self.type_of(file, None, &field.ty);
                        if let (Some(name), Some(of)) = (field.ident, of) {
                            self.fields.insert((own.clone(), name.to_string()), of);
                        }
                    }
                }
                _ => {}
            }
        }
    }

    /// Lists the crates that first make these values on the path from a method, in order; a crate that makes several in
    /// a row counts once.
    pub fn makers(&self, of: (&str, &str), method: &str, values: &[&str]) -> Vec<String> {
        let of = (of.0.to_owned(), of.1.to_owned());
        let mut walk = Walk {
            index: self,
            values,
            made: BTreeSet::new(),
            makers: Vec::new(),
            visited: BTreeSet::new(),
            at: 0,
            locals: BTreeMap::new(),
        };
        let start = self.method(&of, method);
        walk.follow(start.unwrap_or_else(|| panic!("no `{method}` of {of:?}")));
        let missing: Vec<_> = values
            .iter()
            .filter(|value| !walk.made.contains(**value))
            .collect();
        assert!(
            missing.is_empty(),
            "{missing:?} is not made on the way; made: {:?}",
            walk.makers
        );
        let mut crates: Vec<String> = walk.makers;
        crates.dedup();
        crates
    }

    fn method(&self, of: &TypeName, name: &str) -> Option<usize> {
        self.functions.iter().position(|function| {
            function.of.as_ref() == Some(of) && function.signature.ident == name
        })
    }

    /// The first of our types that a written type names, from the outside in.
    fn type_of(&self, file: usize, own: Option<&TypeName>, written: &Type) -> Option<TypeName> {
        match written {
            Type::Reference(inner) => self.type_of(file, own, &inner.elem),
            Type::Slice(inner) => self.type_of(file, own, &inner.elem),
            Type::Tuple(tuple) => tuple
                .elems
                .iter()
                .find_map(|elem| self.type_of(file, own, elem)),
            Type::Path(path) => {
                let names: Vec<String> = path
                    .path
                    .segments
                    .iter()
                    .map(|segment| segment.ident.to_string())
                    .collect();
                self.type_named(file, own, &names).or_else(|| {
                    let last = path.path.segments.last()?;
                    let syn::PathArguments::AngleBracketed(arguments) = &last.arguments else {
                        return None;
                    };
                    arguments.args.iter().find_map(|argument| match argument {
                        syn::GenericArgument::Type(inner) => self.type_of(file, own, inner),
                        _ => None,
                    })
                })
            }
            _ => None,
        }
    }

    fn type_named(
        &self,
        file: usize,
        own: Option<&TypeName>,
        names: &[String],
    ) -> Option<TypeName> {
        if names == ["Self"] {
            return own.cloned();
        }
        let whole = self.expanded(file, names);
        let found = (self.package(file, &whole)?, whole.last()?.clone());
        if self.types.contains(&found) {
            return Some(found);
        }
        // The root of the crate re-exports the type of a crate below it.
        let home = self.root_of(&found.0)?.uses.get(&found.1)?.first()?;
        let found = (home.clone(), found.1);
        self.types.contains(&found).then_some(found)
    }

    fn root_of(&self, package: &str) -> Option<&File> {
        let mut files = self.files.iter();
        files.find(|file| file.package == package && file.module.is_empty())
    }

    /// A path with its first name resolved in this file.
    fn expanded(&self, file: usize, names: &[String]) -> Vec<String> {
        match self.files[file].uses.get(&names[0]) {
            Some(before) => [before.as_slice(), &names[1..]].concat(),
            None => names.to_vec(),
        }
    }

    /// The crate of a full path; `None` if it is not one of ours.
    fn package(&self, file: usize, whole: &[String]) -> Option<String> {
        let first = whole.first()?;
        let is_foreign = ["std", "core", "alloc"].contains(&first.as_str());
        let is_package = whole.len() > 1 && self.files.iter().any(|file| file.package == *first);
        match (is_foreign, is_package) {
            (true, _) => None,
            (false, true) => Some(first.clone()),
            (false, false) => Some(self.files[file].package.clone()),
        }
    }

    /// The free function that a path calls.
    fn function(&self, file: usize, names: &[String]) -> Option<usize> {
        let whole = self.expanded(file, names);
        let package = self.package(file, &whole)?;
        let name = whole.last()?;
        let root = self.root_of(&package)?;
        let module = match whole.len() {
            1 => self.files[file].module.clone(),
            length => whole[length - 2].clone(),
        };
        // The root of the crate re-exports `package::function`.
        let module = match root.uses.get(name) {
            Some(path) if module == package && path.len() > 1 => path[path.len() - 2].clone(),
            Some(_) | None => module,
        };
        self.functions.iter().position(|function| {
            let home = &self.files[function.file];
            function.of.is_none()
                && home.package == package
                && home.module == module
                && function.signature.ident == name
        })
    }
}

fn add_uses(tree: &UseTree, before: &[String], uses: &mut BTreeMap<String, Vec<String>>) {
    let below = |name: &syn::Ident| [before, &[name.to_string()]].concat();
    match tree {
        UseTree::Path(path) => add_uses(&path.tree, &below(&path.ident), uses),
        UseTree::Group(group) => group
            .items
            .iter()
            .for_each(|tree| add_uses(tree, before, uses)),
        UseTree::Name(name) if name.ident == "self" => {
            if let Some(last) = before.last() {
                uses.insert(last.clone(), before.to_vec());
            }
        }
        UseTree::Name(name) => {
            uses.insert(name.ident.to_string(), below(&name.ident));
        }
        UseTree::Rename(name) => {
            uses.insert(name.rename.to_string(), below(&name.ident));
        }
        _ => {}
    }
}

/// A walk through the bodies of functions, visiting each once.
struct Walk<'i> {
    index: &'i SourceIndex,
    values: &'i [&'i str],
    made: BTreeSet<String>,
    makers: Vec<String>,
    visited: BTreeSet<usize>,
    /// The current function.
    at: usize,
    /// The known types of its variables.
    locals: BTreeMap<String, TypeName>,
}

impl Walk<'_> {
    fn follow(&mut self, function: usize) {
        if !self.visited.insert(function) {
            return;
        }
        let outer = (self.at, std::mem::take(&mut self.locals));
        self.at = function;
        let (index, called) = (self.index, &self.index.functions[function]);
        for input in &called.signature.inputs {
            if let FnArg::Typed(input) = input {
                let of = index.type_of(called.file, called.of.as_ref(), &input.ty);
                self.bind(&input.pat, of);
            }
        }
        self.visit_block(&called.block);
        (self.at, self.locals) = outer;
    }

    fn file(&self) -> usize {
        self.index.functions[self.at].file
    }

    fn own(&self) -> Option<&TypeName> {
        self.index.functions[self.at].of.as_ref()
    }

    fn named(&self, names: &[String]) -> Option<TypeName> {
        self.index.type_named(self.file(), self.own(), names)
    }

    fn bind(&mut self, pattern: &Pat, of: Option<TypeName>) {
        match pattern {
            Pat::Ident(name) => {
                let name = name.ident.to_string();
                match of {
                    Some(of) => self.locals.insert(name, of),
                    None => self.locals.remove(&name),
                };
            }
            Pat::Type(typed) => {
                let of = self.index.type_of(self.file(), self.own(), &typed.ty);
                self.bind(&typed.pat, of);
            }
            Pat::Reference(inner) => self.bind(&inner.pat, of),
            Pat::TupleStruct(inner) => {
                for pattern in &inner.elems {
                    self.bind(pattern, of.clone());
                }
            }
            Pat::Struct(inner) => {
                let of = self.named(&names(&inner.path));
                for field in &inner.fields {
                    let of = of.clone().and_then(|of| self.field(of, &field.member));
                    self.bind(&field.pat, of);
                }
            }
            _ => {}
        }
    }

    fn field(&self, of: TypeName, member: &Member) -> Option<TypeName> {
        let Member::Named(name) = member else {
            return None;
        };
        self.index.fields.get(&(of, name.to_string())).cloned()
    }

    /// The type of an expression, or of what it wraps; `None` if unknown.
    fn type_of(&self, expression: &Expr) -> Option<TypeName> {
        match expression {
            Expr::Path(path) => {
                let names = names(&path.path);
                match names.as_slice() {
                    [name] if name == "self" => self.own().cloned(),
                    [name] => self.locals.get(name).cloned(),
                    _ => self.value_of(&names),
                }
            }
            Expr::Field(field) => {
                let of = self.type_of(&field.base)?;
                self.field(of, &field.member)
            }
            Expr::MethodCall(call) => {
                let of = self.type_of(&call.receiver)?;
                match self.index.method(&of, &call.method.to_string()) {
                    Some(function) => self.returned(function),
                    // For a method of the standard library: assume that the wrapped type stays the same.
                    None => Some(of),
                }
            }
            Expr::Call(call) => match &*call.func {
                Expr::Path(path) => match self.called(&names(&path.path)) {
                    Some(function) => self.returned(function),
                    None => call.args.first().and_then(|first| self.type_of(first)),
                },
                _ => None,
            },
            Expr::Struct(literal) => self.value_of(&names(&literal.path)),
            Expr::Try(inner) => self.type_of(&inner.expr),
            Expr::Paren(inner) => self.type_of(&inner.expr),
            Expr::Reference(inner) => self.type_of(&inner.expr),
            Expr::Unary(inner) => self.type_of(&inner.expr),
            Expr::Index(inner) => self.type_of(&inner.expr),
            _ => None,
        }
    }

    fn returned(&self, function: usize) -> Option<TypeName> {
        let function = &self.index.functions[function];
        match &function.signature.output {
            ReturnType::Type(_, of) => self.index.type_of(function.file, function.of.as_ref(), of),
            ReturnType::Default => None,
        }
    }

    /// The type whose value a path makes: `Type`, or `Enum::Variant`.
    fn value_of(&self, names: &[String]) -> Option<TypeName> {
        let before = names.len().checked_sub(1).map(|last| &names[..last]);
        let of_variant = before.filter(|names| !names.is_empty());
        of_variant
            .and_then(|names| self.named(names))
            .or_else(|| self.named(names))
    }

    fn called(&self, names: &[String]) -> Option<usize> {
        let (name, before) = names.split_last()?;
        let of = match before {
            [] => None,
            before => self.named(before),
        };
        match of {
            Some(of) => self.index.method(&of, name),
            None => self.index.function(self.file(), names),
        }
    }

    fn note(&mut self, names: &[String]) {
        let begins_large = |name: &String| name.starts_with(char::is_uppercase);
        let made = names.last().filter(|name| begins_large(name));
        let Some((_, value)) = made.and_then(|_| self.value_of(names)) else {
            return;
        };
        if self.values.contains(&value.as_str()) && self.made.insert(value) {
            let package = self.index.files[self.file()].package.clone();
            self.makers.push(package.replace('_', "-"));
        }
    }
}

impl<'ast> Visit<'ast> for Walk<'_> {
    fn visit_expr(&mut self, expression: &'ast Expr) {
        match expression {
            Expr::MethodCall(call) => {
                self.visit_expr(&call.receiver);
                let of = self.type_of(&call.receiver);
                if ON_FAILURE.iter().any(|name| call.method == name) {
                    return;
                }
                let method = of
                    .as_ref()
                    .and_then(|of| self.index.method(of, &call.method.to_string()));
                for argument in &call.args {
                    if let (Expr::Closure(closure), None) = (argument, method)
                        && let [pattern] = closure.inputs.iter().collect::<Vec<_>>()[..]
                    {
                        self.bind(pattern, of.clone());
                    }
                    self.visit_expr(argument);
                }
                if let Some(method) = method {
                    self.follow(method);
                }
            }
            Expr::Call(call) => {
                call.args
                    .iter()
                    .for_each(|argument| self.visit_expr(argument));
                self.visit_expr(&call.func);
            }
            Expr::Path(path) => {
                let names = names(&path.path);
                self.note(&names);
                if let Some(function) = self.called(&names) {
                    self.follow(function);
                }
            }
            Expr::Struct(literal) => {
                visit::visit_expr_struct(self, literal);
                self.note(&names(&literal.path));
            }
            Expr::Let(condition) => {
                self.visit_expr(&condition.expr);
                let of = self.type_of(&condition.expr);
                self.bind(&condition.pat, of);
            }
            Expr::ForLoop(each) => {
                self.visit_expr(&each.expr);
                let of = self.type_of(&each.expr);
                self.bind(&each.pat, of);
                self.visit_block(&each.body);
            }
            Expr::Match(choice) => {
                self.visit_expr(&choice.expr);
                let of = self.type_of(&choice.expr);
                for arm in choice.arms.iter().filter(|arm| !is_failure(&arm.pat)) {
                    self.bind(&arm.pat, of.clone());
                    self.visit_expr(&arm.body);
                }
            }
            _ => visit::visit_expr(self, expression),
        }
    }

    fn visit_local(&mut self, local: &'ast syn::Local) {
        let Some(init) = &local.init else { return };
        self.visit_expr(&init.expr);
        let of = self.type_of(&init.expr);
        self.bind(&local.pat, of);
    }
}

/// True for the pattern of a failure, which the followed message does not take.
fn is_failure(pattern: &Pat) -> bool {
    matches!(pattern, Pat::TupleStruct(inner) if inner.path.is_ident("Err"))
}

fn names(path: &syn::Path) -> Vec<String> {
    path.segments
        .iter()
        .map(|segment| segment.ident.to_string())
        .collect()
}
