//! Damage.

/// Damage.
///
/// # Errors
///
/// None.
pub fn command(_: &[String]) -> Result<(), String> {
    Ok(())
}
