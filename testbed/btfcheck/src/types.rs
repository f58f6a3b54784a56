//! The part of a C type that libbpf looks at when it compares prototypes, and a
//! way to spell such a type for people.

/// Number of a type in its table; 0 is `void` (BTF's numbering).
pub(crate) type TypeId = u32;

/// A type without its modifiers (`const`, `volatile`, `restrict`, type tags) and
/// typedefs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Type {
    /// The name as written in C: the outermost typedef's if there is one. Empty
    /// for pointers, arrays, prototypes and anonymous types without a typedef.
    pub name: String,
    /// What the type is.
    pub kind: Kind,
}

/// What a type is, as far as compatibility depends on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `void`, and the last parameter of a variadic prototype.
    Void,
    /// An integer of any width and sign, `bool` included.
    Int {
        /// Not 0 only in an obsolete encoding of bitfields.
        offset_bits: u8,
    },
    /// An enum of 32 or 64 bits.
    Enum,
    /// A struct that is defined.
    Struct,
    /// A union that is defined.
    Union,
    /// A struct or union that is declared and never defined.
    Fwd {
        /// A union rather than a struct.
        is_union: bool,
    },
    /// A pointer to the given type.
    Ptr(TypeId),
    /// An array of the given type.
    Array(TypeId),
    /// A function's prototype.
    Proto(Proto),
    /// A kind that has no place in a prototype (its BTF name).
    Other(String),
}

/// A function's prototype.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Proto {
    /// The type of the returned value.
    pub ret: TypeId,
    /// The types of the parameters, in order.
    pub params: Vec<TypeId>,
}

/// A collection of types that refer to each other by number.
pub(crate) trait TypeTable {
    /// The type of number `id` behind its modifiers and typedefs, or `None` if the
    /// table has no such type.
    fn resolve(&self, id: TypeId) -> Option<Type>;
}

/// How many pointers and arrays [`spell`] follows; more are elided.
const SPELL_DEPTH: u32 = 8;

/// Spells type `id` of `table` in the manner of C, e.g. `struct cpumask *`. A type
/// that is only declared is spelled `forward struct cpumask`, since that is what a
/// reader has to see.
pub(crate) fn spell(table: &dyn TypeTable, id: TypeId) -> String {
    spell_to_depth(table, id, SPELL_DEPTH)
}

fn spell_to_depth(table: &dyn TypeTable, id: TypeId, depth: u32) -> String {
    let Some(ty) = table.resolve(id) else {
        return format!("(no type {id})");
    };
    if depth == 0 {
        return "…".to_string();
    }
    let named = |keyword: &str| match ty.name.as_str() {
        "" => format!("{keyword} (anonymous)"),
        name => format!("{keyword} {name}"),
    };
    match &ty.kind {
        Kind::Void => "void".to_string(),
        Kind::Int { offset_bits: 0 } => ty.name.clone(),
        Kind::Int { .. } => format!("{} (bitfield)", ty.name),
        Kind::Enum => named("enum"),
        Kind::Struct => named("struct"),
        Kind::Union => named("union"),
        Kind::Fwd { is_union: false } => named("forward struct"),
        Kind::Fwd { is_union: true } => named("forward union"),
        Kind::Ptr(to) => {
            let to = spell_to_depth(table, *to, depth - 1);
            let gap = if to.ends_with('*') { "" } else { " " };
            format!("{to}{gap}*")
        }
        Kind::Array(of) => format!("{}[]", spell_to_depth(table, *of, depth - 1)),
        Kind::Proto(proto) => {
            let params: Vec<_> = proto
                .params
                .iter()
                .map(|&param| spell_to_depth(table, param, depth - 1))
                .collect();
            let ret = spell_to_depth(table, proto.ret, depth - 1);
            format!("{ret} ({})", params.join(", "))
        }
        Kind::Other(kind) => named(kind),
    }
}

#[cfg(test)]
pub(crate) mod testing {
    //! A table of types made by hand.

    use super::*;

    /// Types by number; number 0 is `void`.
    pub(crate) struct Table(Vec<Type>);

    impl Table {
        /// A table with nothing but `void`.
        pub(crate) fn new() -> Self {
            let void = Type {
                name: String::new(),
                kind: Kind::Void,
            };
            Self(vec![void])
        }

        /// Adds a type; returns its number.
        pub(crate) fn add(&mut self, name: &str, kind: Kind) -> TypeId {
            self.0.push(Type {
                name: name.to_string(),
                kind,
            });
            u32::try_from(self.0.len() - 1).unwrap()
        }

        /// Adds an integer.
        pub(crate) fn int(&mut self, name: &str) -> TypeId {
            self.add(name, Kind::Int { offset_bits: 0 })
        }

        /// Adds a pointer.
        pub(crate) fn ptr(&mut self, to: TypeId) -> TypeId {
            self.add("", Kind::Ptr(to))
        }

        /// Adds a pointer to a struct.
        pub(crate) fn struct_ptr(&mut self, name: &str) -> TypeId {
            let to = self.add(name, Kind::Struct);
            self.ptr(to)
        }

        /// Adds a prototype.
        pub(crate) fn proto(&mut self, ret: TypeId, params: &[TypeId]) -> TypeId {
            let params = params.to_vec();
            self.add("", Kind::Proto(Proto { ret, params }))
        }
    }

    impl TypeTable for Table {
        fn resolve(&self, id: TypeId) -> Option<Type> {
            self.0.get(id as usize).cloned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::testing::Table;
    use super::*;

    #[test]
    fn spells_types_as_c_does() {
        let mut t = Table::new();
        let u64_t = t.int("u64");
        let task = t.struct_ptr("task_struct");
        let task_ptr = t.ptr(task);
        let fwd = t.add("cpumask", Kind::Fwd { is_union: false });
        let fwd_ptr = t.ptr(fwd);
        let array = t.add("", Kind::Array(u64_t));
        let anonymous = t.add("", Kind::Enum);
        let proto = t.proto(0, &[u64_t, task]);
        for (id, want) in [
            (0, "void"),
            (u64_t, "u64"),
            (task, "struct task_struct *"),
            (task_ptr, "struct task_struct **"),
            (fwd_ptr, "forward struct cpumask *"),
            (array, "u64[]"),
            (anonymous, "enum (anonymous)"),
            (proto, "void (u64, struct task_struct *)"),
            (99, "(no type 99)"),
        ] {
            assert_eq!(spell(&t, id), want);
        }
    }

    #[test]
    fn spelling_ends_on_a_circle_of_pointers() {
        let mut t = Table::new();
        let circle = t.add("", Kind::Ptr(1));
        assert!(spell(&t, circle).starts_with('…'));
    }
}
