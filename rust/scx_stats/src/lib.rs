//! Statistics as plain structs.
