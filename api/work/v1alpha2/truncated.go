package v1alpha2

// StatusTruncated is the type of a binding's condition that is True while
// statuses are left out or shortened, because they are too large to be stored;
// not there otherwise.
const StatusTruncated = "StatusTruncated"

// StatusTooLargeReason goes with StatusTruncated True.
const StatusTooLargeReason = "TooLarge"
