package hub

import "errors"

// ErrAway says that a request was not sent, or had no answer, because the hub is
// out of reach. Who asked need not ask again before the hub is back.
var ErrAway = errors.New("the hub is out of reach")
