//! libbpf's rules for binding a kfunc extern to a function of the kernel.
//!
//! Follows libbpf 1.7.0 to the letter: `bpf_object__resolve_ksym_func_btf_id()` in libbpf.c,
//! `__bpf_core_types_are_compat()` in relo_core.c. Where those return 0 or an error, a weak extern
//! stays unresolved and a strong one fails the load; both are a [`Mismatch`] here.
//!
//! In short: the number of arguments must agree, and so must the kind of the result
//! and of each argument behind typedefs and qualifiers. Names, sizes, signs and
//! members do not matter. Pointers and arrays are followed, so `void *` does not
//! match `struct x *`, and a struct that is only declared does not match a struct
//! that is defined.

use std::fmt;

use crate::types::{spell, Kind, Proto, TypeId, TypeTable};

/// Links of one chain of pointers, arrays and results that libbpf follows (`depth`
/// in `__bpf_core_types_are_compat()`).
const MAX_DEPTH: u32 = 32;

/// Nesting of prototypes in arguments that libbpf follows (the level that
/// `bpf_core_types_are_compat()` starts at).
const MAX_LEVEL: u32 = 32;

/// The argument that the verifier adds to a call of a kfunc with
/// `KF_IMPLICIT_ARGS`.
const HIDDEN_ARGUMENT: &str = "struct bpf_prog_aux *";

/// Why an extern does not bind to the kernel's function of its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Mismatch {
    /// The numbers of arguments differ.
    ArgumentCount {
        /// The extern's number.
        local: usize,
        /// The kernel's.
        kernel: usize,
    },
    /// The kernel's prototype shows an argument that it passes to itself. Since
    /// Linux 7.0 the build of a kernel takes such an argument out of a kfunc's BTF
    /// (`KF_IMPLICIT_ARGS`), but misses those that pahole did not mark as kfuncs.
    /// Nothing can call these: the kernel's BTF is damaged, the extern is right.
    HiddenArgument {
        /// The extern's number of arguments, one less than the kernel's.
        local: usize,
    },
    /// An argument's types are incompatible.
    Argument {
        /// Which argument, counted from 1.
        number: usize,
        /// The extern's type.
        local: String,
        /// The kernel's.
        kernel: String,
    },
    /// The types of the result are incompatible.
    Return {
        /// The extern's type.
        local: String,
        /// The kernel's.
        kernel: String,
    },
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ArgumentCount { local, kernel } => {
                write!(f, "{}, kernel has {kernel}", arguments(*local))
            }
            Self::HiddenArgument { local } => write!(
                f,
                "{}, kernel shows {}: its last should be hidden, \
                 this kernel's BTF is damaged",
                arguments(*local),
                local + 1
            ),
            Self::Argument {
                number,
                local,
                kernel,
            } => write!(f, "argument {number}: {local}, kernel {kernel}"),
            Self::Return { local, kernel } => {
                write!(f, "returns {local}, kernel returns {kernel}")
            }
        }
    }
}

fn arguments(count: usize) -> String {
    let s = if count == 1 { "" } else { "s" };
    format!("{count} argument{s}")
}

/// A prototype and the table that its types are in.
#[derive(Clone, Copy)]
pub(crate) struct Function<'a> {
    /// Where the types are.
    pub table: &'a dyn TypeTable,
    /// The prototype.
    pub proto: &'a Proto,
}

/// Whether extern `local` binds to the kernel's function `kernel`.
///
/// # Errors
/// The first difference that libbpf would stumble on.
pub(crate) fn compare(local: Function<'_>, kernel: Function<'_>) -> Result<(), Mismatch> {
    let (l, k) = (&local.proto.params, &kernel.proto.params);
    if l.len() != k.len() {
        return Err(count_mismatch(l.len(), kernel));
    }
    let pair = Pair {
        local: local.table,
        kernel: kernel.table,
    };
    for (index, (&l, &k)) in l.iter().zip(k).enumerate() {
        if !pair.compatible(l, k, MAX_DEPTH, MAX_LEVEL - 1) {
            return Err(Mismatch::Argument {
                number: index + 1,
                local: spell(local.table, l),
                kernel: spell(kernel.table, k),
            });
        }
    }
    let (l, k) = (local.proto.ret, kernel.proto.ret);
    // The prototype itself was the first link of this chain.
    if !pair.compatible(l, k, MAX_DEPTH - 1, MAX_LEVEL) {
        return Err(Mismatch::Return {
            local: spell(local.table, l),
            kernel: spell(kernel.table, k),
        });
    }
    Ok(())
}

/// The mismatch of an extern of `local` arguments with `kernel`, which has another
/// number of them.
fn count_mismatch(local: usize, kernel: Function<'_>) -> Mismatch {
    let params = &kernel.proto.params;
    let last = params.last().map(|&id| spell(kernel.table, id));
    if local + 1 == params.len() && last.as_deref() == Some(HIDDEN_ARGUMENT) {
        return Mismatch::HiddenArgument { local };
    }
    Mismatch::ArgumentCount {
        local,
        kernel: params.len(),
    }
}

/// The two tables of a comparison.
struct Pair<'a> {
    local: &'a dyn TypeTable,
    kernel: &'a dyn TypeTable,
}

impl Pair<'_> {
    /// Whether two types are compatible when at most `depth` links are followed,
    /// and prototypes in arguments at most `level` deep.
    fn compatible(&self, mut l: TypeId, mut k: TypeId, depth: u32, level: u32) -> bool {
        for _ in 0..depth {
            let (Some(local), Some(kernel)) = (self.local.resolve(l), self.kernel.resolve(k))
            else {
                return false;
            };
            (l, k) = match (local.kind, kernel.kind) {
                (Kind::Void, Kind::Void)
                | (Kind::Struct, Kind::Struct)
                | (Kind::Union, Kind::Union)
                | (Kind::Enum, Kind::Enum)
                // libbpf does not look whether a struct or a union is declared.
                | (Kind::Fwd { .. }, Kind::Fwd { .. }) => return true,
                (Kind::Int { offset_bits: l }, Kind::Int { offset_bits: k }) => {
                    return l == 0 && k == 0;
                }
                (Kind::Ptr(l), Kind::Ptr(k)) | (Kind::Array(l), Kind::Array(k)) => (l, k),
                (Kind::Proto(l), Kind::Proto(k)) => {
                    if !self.params_compatible(&l, &k, level) {
                        return false;
                    }
                    (l.ret, k.ret)
                }
                _ => return false,
            };
        }
        false
    }

    fn params_compatible(&self, local: &Proto, kernel: &Proto, level: u32) -> bool {
        let (l, k) = (&local.params, &kernel.params);
        let mut pairs = l.iter().zip(k);
        l.len() == k.len()
            && (l.is_empty() || level > 0)
            && pairs.all(|(&l, &k)| self.compatible(l, k, MAX_DEPTH, level - 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::testing::Table;

    /// Compares two prototypes given by number.
    fn check(l: (&Table, TypeId), k: (&Table, TypeId)) -> Result<(), String> {
        let proto = |(table, id): (&Table, TypeId)| match table.resolve(id).unwrap().kind {
            Kind::Proto(proto) => proto,
            other => panic!("{other:?} is no prototype"),
        };
        let (l_proto, k_proto) = (proto(l), proto(k));
        let local = Function {
            table: l.0,
            proto: &l_proto,
        };
        let kernel = Function {
            table: k.0,
            proto: &k_proto,
        };
        compare(local, kernel).map_err(|mismatch| mismatch.to_string())
    }

    /// Compares `void f(L)` with `void f(K)`, where both types are made by a closure.
    fn check_argument(
        local: impl Fn(&mut Table) -> TypeId,
        kernel: impl Fn(&mut Table) -> TypeId,
    ) -> Result<(), String> {
        let (mut l, mut k) = (Table::new(), Table::new());
        let (l_arg, k_arg) = (local(&mut l), kernel(&mut k));
        let (l_proto, k_proto) = (l.proto(0, &[l_arg]), k.proto(0, &[k_arg]));
        check((&l, l_proto), (&k, k_proto))
    }

    /// A chain of `links` pointers that ends in an integer.
    fn chain(links: usize) -> impl Fn(&mut Table) -> TypeId {
        move |t| (0..links).fold(t.int("int"), |to, _| t.ptr(to))
    }

    #[test]
    fn same_prototypes_bind() {
        let build = |t: &mut Table| {
            let task = t.struct_ptr("task_struct");
            let u64_t = t.int("u64");
            t.proto(u64_t, &[task, u64_t])
        };
        let (mut l, mut k) = (Table::new(), Table::new());
        // Different numbers for the same types.
        k.int("char");
        let (l_proto, k_proto) = (build(&mut l), build(&mut k));
        assert_eq!(check((&l, l_proto), (&k, k_proto)), Ok(()));
    }

    #[test]
    fn argument_counts_are_told() {
        let (mut l, mut k) = (Table::new(), Table::new());
        let (l_int, k_int) = (l.int("int"), k.int("int"));
        let (five, one) = (l.proto(0, &[l_int; 5]), l.proto(0, &[l_int]));
        let four = k.proto(0, &[k_int; 4]);
        let err = check((&l, five), (&k, four)).unwrap_err();
        assert_eq!(err, "5 arguments, kernel has 4");
        let err = check((&l, one), (&k, four)).unwrap_err();
        assert_eq!(err, "1 argument, kernel has 4");
    }

    #[test]
    fn damaged_kernel_btf_is_recognized() {
        let (mut l, mut k) = (Table::new(), Table::new());
        let (l_int, k_int) = (l.int("int"), k.int("int"));
        let (aux, prog) = (k.struct_ptr("bpf_prog_aux"), k.struct_ptr("bpf_prog"));
        let one = l.proto(0, &[l_int]);
        let damaged = k.proto(0, &[k_int, aux]);
        assert_eq!(
            check((&l, one), (&k, damaged)).unwrap_err(),
            "1 argument, kernel shows 2: its last should be hidden, \
             this kernel's BTF is damaged"
        );
        for params in [vec![k_int, prog], vec![k_int, k_int, aux], vec![]] {
            let other = k.proto(0, &params);
            let err = check((&l, one), (&k, other)).unwrap_err();
            assert_eq!(err, format!("1 argument, kernel has {}", params.len()));
        }
    }

    #[test]
    fn a_variadic_argument_counts() {
        let (mut l, mut k) = (Table::new(), Table::new());
        let int = l.int("int");
        let variadic = l.proto(0, &[int, 0]);
        let int = k.int("int");
        let plain = k.proto(0, &[int, int]);
        let err = check((&l, variadic), (&k, plain)).unwrap_err();
        assert_eq!(err, "argument 2: void, kernel int");
        assert_eq!(check((&l, variadic), (&l, variadic)), Ok(()));
    }

    #[test]
    fn results_are_told() {
        let (mut l, mut k) = (Table::new(), Table::new());
        let bool_t = l.int("bool");
        let (local, kernel) = (l.proto(bool_t, &[]), k.proto(0, &[]));
        let err = check((&l, local), (&k, kernel)).unwrap_err();
        assert_eq!(err, "returns bool, kernel returns void");
    }

    #[test]
    fn integers_of_any_width_and_enums_of_any_width_match() {
        assert_eq!(check_argument(|t| t.int("u8"), |t| t.int("s64")), Ok(()));
        let enumeration = |name: &'static str| move |t: &mut Table| t.add(name, Kind::Enum);
        assert_eq!(check_argument(enumeration("a"), enumeration("b")), Ok(()));
        assert!(check_argument(enumeration("a"), |t| t.int("u32")).is_err());
    }

    #[test]
    fn bitfield_integers_never_match() {
        let bitfield = |t: &mut Table| t.add("int", Kind::Int { offset_bits: 3 });
        assert!(check_argument(bitfield, bitfield).is_err());
        assert!(check_argument(bitfield, |t| t.int("int")).is_err());
    }

    #[test]
    fn pointers_are_followed() {
        let void_ptr = |t: &mut Table| t.ptr(0);
        let task = |t: &mut Table| t.struct_ptr("task_struct");
        let rq = |t: &mut Table| t.struct_ptr("rq");
        // Names of structs are not compared.
        assert_eq!(check_argument(task, rq), Ok(()));
        assert_eq!(
            check_argument(void_ptr, task).unwrap_err(),
            "argument 1: void *, kernel struct task_struct *"
        );
    }

    #[test]
    fn a_declared_struct_does_not_match_a_defined_one() {
        let forward = |is_union| {
            move |t: &mut Table| {
                let to = t.add("cpumask", Kind::Fwd { is_union });
                t.ptr(to)
            }
        };
        assert_eq!(
            check_argument(forward(false), |t| t.struct_ptr("cpumask")).unwrap_err(),
            "argument 1: forward struct cpumask *, kernel struct cpumask *"
        );
        assert_eq!(check_argument(forward(false), forward(false)), Ok(()));
        assert_eq!(check_argument(forward(false), forward(true)), Ok(()));
        let defined = |kind: Kind| {
            move |t: &mut Table| {
                let to = t.add("x", kind.clone());
                t.ptr(to)
            }
        };
        assert!(check_argument(defined(Kind::Struct), defined(Kind::Union)).is_err());
    }

    #[test]
    fn arrays_compare_their_elements() {
        let array_of = |of: TypeId| {
            move |t: &mut Table| {
                t.int("int");
                t.add("", Kind::Array(of))
            }
        };
        assert_eq!(check_argument(array_of(1), array_of(1)), Ok(()));
        assert!(check_argument(array_of(1), array_of(0)).is_err());
        assert!(check_argument(array_of(1), chain(1)).is_err());
    }

    #[test]
    fn kinds_that_have_no_place_in_a_prototype_never_match() {
        let float = |t: &mut Table| t.add("double", Kind::Other("FLOAT".to_string()));
        assert_eq!(
            check_argument(float, float).unwrap_err(),
            "argument 1: FLOAT double, kernel FLOAT double"
        );
        assert!(check_argument(|_| 99, |_| 99).is_err());
    }

    #[test]
    fn callbacks_are_compared_deeply() {
        let callback = |params: usize| {
            move |t: &mut Table| {
                let int = t.int("int");
                let proto = t.proto(int, &vec![int; params]);
                t.ptr(proto)
            }
        };
        assert_eq!(check_argument(callback(2), callback(2)), Ok(()));
        assert_eq!(
            check_argument(callback(2), callback(1)).unwrap_err(),
            "argument 1: int (int, int) *, kernel int (int) *"
        );
    }

    #[test]
    fn depth_is_limited_as_in_libbpf() {
        // 31 pointers and the integer are 32 links.
        assert_eq!(check_argument(chain(31), chain(31)), Ok(()));
        assert!(check_argument(chain(32), chain(32)).is_err());
        // The prototype is a link of the result's chain.
        for (links, binds) in [(30, true), (31, false)] {
            let mut t = Table::new();
            let ret = chain(links)(&mut t);
            let proto = t.proto(ret, &[]);
            assert_eq!(check((&t, proto), (&t, proto)).is_ok(), binds, "{links}");
        }
    }

    #[test]
    fn nesting_is_limited_as_in_libbpf() {
        // A callback that takes a callback that takes …
        let nested = |levels: usize| {
            move |t: &mut Table| {
                (0..levels).fold(t.int("int"), |arg, _| {
                    let proto = t.proto(0, &[arg]);
                    t.ptr(proto)
                })
            }
        };
        assert_eq!(check_argument(nested(31), nested(31)), Ok(()));
        assert!(check_argument(nested(32), nested(32)).is_err());
    }
}
