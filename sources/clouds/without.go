//go:build !clouds

package clouds

// Built says that what is for clouds is asked for.
const Built = false
